// wasm_exec.js of the Go distribution, which the build names by this.
declare module "go-wasm-exec";
