//! Generates the stubs. protox compiles the contract, so that no protoc is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let includes = ["../../proto", "../../third_party"];
    let contract = protox::compile(["apportion/v1/service.proto"], includes)?;
    tonic_prost_build::configure()
        .build_server(false)
        .extern_path(".google.rpc.Status", "::tonic_types::Status")
        .compile_fds(contract)?;
    Ok(())
}
