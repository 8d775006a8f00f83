pub mod v1 { tonic::include_proto!("apportion.v1"); }
fn main() {}
