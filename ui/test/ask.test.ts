import assert from "node:assert/strict";
import { test } from "node:test";

import { file_apportion_v1_service } from "../gen/apportion/v1/service_pb.ts";
import { file_apportion_v1alpha1_service } from "../gen/apportion/v1alpha1/service_pb.ts";
import { pathOf } from "../src/core/ask.ts";

test("each call of the contract is sent to its service", () => {
  for (const file of [file_apportion_v1_service, file_apportion_v1alpha1_service]) {
    for (const service of file.services) {
      for (const method of service.methods) {
        assert.equal(pathOf(method.name), `/${service.typeName}/${method.name}`);
      }
    }
  }
});
