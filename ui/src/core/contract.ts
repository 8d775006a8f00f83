// The contract's messages in protobuf's JSON, generated from proto/ by `npm run generate`. They are types alone.
export type * from "../../gen/apportion/v1/answer_pb.ts";
export type * from "../../gen/apportion/v1/change_pb.ts";
export type * from "../../gen/apportion/v1/edit_pb.ts";
export type * from "../../gen/apportion/v1/explain_pb.ts";
export type * from "../../gen/apportion/v1/forecast_pb.ts";
export type * from "../../gen/apportion/v1alpha1/history_pb.ts";
export type * from "../../gen/apportion/v1alpha1/ledger_pb.ts";
export type * from "../../gen/apportion/v1/plan_pb.ts";
export type * from "../../gen/apportion/v1/policy_pb.ts";
export type * from "../../gen/apportion/v1/cause_pb.ts";
export type * from "../../gen/apportion/v1/remedy_pb.ts";
export type * from "../../gen/apportion/v1/resource_pb.ts";
export type * from "../../gen/apportion/v1/service_pb.ts";
export type * from "../../gen/apportion/v1/session_pb.ts";
export type * from "../../gen/apportion/v1/snapshot_pb.ts";
export type * from "../../gen/apportion/v1/step_pb.ts";
