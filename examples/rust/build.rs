//! Generates the stubs. protox compiles the contract, so that no protoc is needed.

use std::{env, fs, path::PathBuf};

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["apportion/v1/service.proto", "apportion/v1alpha1/service.proto", "google/rpc/error_details.proto"];
    let contract = protox::compile(files, ["../../proto", "../../tools/third_party"])?;
    // With the contract's own description the program reads protobuf's JSON.
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("contract.binpb"), contract.encode_to_vec())?;
    tonic_prost_build::configure().build_server(false).extern_path(".google.rpc.Status", "::tonic_types::Status").compile_fds(contract)?;
    println!("cargo:rerun-if-changed=../../proto");
    println!("cargo:rerun-if-changed=../../tools/third_party");
    Ok(())
}
