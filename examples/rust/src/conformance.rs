//! Plays the conformance vectors: each message is the same in both forms, and each call is answered as written.

use std::{env, error::Error, fs, path::Path, process::ExitCode, time::Duration};

use apportion::{from_json, v1, v1alpha1};
use prost::Message;
use tonic::{Request, client::Grpc, transport::Channel, transport::Endpoint};
use tonic_prost::ProstCodec;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// One message of a vector, which a method's name decides the kinds of.
#[derive(Debug)]
enum Said<Q, A> {
    Request(Q),
    Response(A),
    Status(tonic_types::Status),
}

/// A message that is written in both forms.
fn read<M: Message + Default + PartialEq>(file: &Path, kind: &str) -> Outcome<M> {
    let message = M::decode(fs::read(file)?.as_slice())?;
    let same = message == from_json(kind, &fs::read_to_string(file.with_extension("json"))?)?;
    same.then_some(message).ok_or_else(|| format!("{}: the forms differ", file.display()).into())
}

/// A vector's messages in order.
fn read_all<Q, A>(folder: &Path, method: &str) -> Outcome<Vec<Said<Q, A>>>
where
    Q: Message + Default + PartialEq,
    A: Message + Default + PartialEq,
{
    let mut files: Vec<_> = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "binpb"));
    files.sort_by_key(|file| number(file));
    let package = if matches!(method, "GetHistory" | "GetUsage") { "v1alpha1" } else { "v1" };
    let said = files.iter().map(|file| {
        Ok(match file.file_stem().and_then(|stem| stem.to_str()?.split('.').nth(1)) {
            Some("request") => Said::Request(read(file, &format!("apportion.{package}.{method}Request"))?),
            Some("response") => Said::Response(read(file, &format!("apportion.{package}.{method}Response"))?),
            _ => Said::Status(read(file, "google.rpc.Status")?),
        })
    });
    said.collect()
}

fn number(file: &Path) -> Option<u32> {
    file.file_name()?.to_str()?.split('.').next()?.parse().ok()
}

async fn replay<Q, A>(channel: &Channel, folder: &Path, method: &str) -> Outcome<()>
where
    Q: Message + Default + PartialEq + Clone + 'static,
    A: Message + Default + PartialEq + std::fmt::Debug + 'static,
{
    let exchange = read_all::<Q, A>(folder, method)?;
    let requests: Vec<Q> =
        exchange.iter().filter_map(|said| if let Said::Request(request) = said { Some(request.clone()) } else { None }).collect();
    let mut call = Request::new(tokio_stream::iter(requests));
    call.set_timeout(Duration::from_secs(10));
    let mut service = Grpc::new(channel.clone());
    service.ready().await?;
    // On the wire every call is a stream in both directions.
    let service_name = match method {
        "GetHistory" | "GetUsage" => "v1alpha1.InsightService",
        "UploadSnapshot" | "DownloadSnapshot" | "ListSnapshots" => "v1.SnapshotService",
        _ => "v1.DecisionService",
    };
    let path = format!("/apportion.{service_name}/{method}").parse()?;
    let mut answers = service.streaming(call, path, ProstCodec::<Q, A>::default()).await.map(tonic::Response::into_inner);
    for said in exchange {
        let answer = match (&said, &mut answers) {
            (Said::Request(_), _) => continue,
            (_, Ok(answers)) => answers.message().await,
            (_, Err(status)) => Err(status.clone()),
        };
        let right = match (&said, &answer) {
            (Said::Response(expected), Ok(Some(answer))) => answer == expected,
            (Said::Status(expected), Err(status)) => tonic_types::Status::decode(status.details())? == *expected,
            _ => false,
        };
        if !right {
            return Err(format!("answered with {answer:?}").into());
        }
    }
    Ok(())
}

async fn replay_any(channel: &Channel, folder: &Path) -> Outcome<()> {
    let method = folder.parent().and_then(|parent| parent.file_name()?.to_str()).unwrap_or_default();
    match method {
        "EvaluateShares" => replay::<v1::EvaluateSharesRequest, v1::EvaluateSharesResponse>(channel, folder, method).await,
        "CheckEnqueue" => replay::<v1::CheckEnqueueRequest, v1::CheckEnqueueResponse>(channel, folder, method).await,
        "Explain" => replay::<v1::ExplainRequest, v1::ExplainResponse>(channel, folder, method).await,
        "Plan" => replay::<v1::PlanRequest, v1::PlanResponse>(channel, folder, method).await,
        "Remedies" => replay::<v1::RemediesRequest, v1::RemediesResponse>(channel, folder, method).await,
        "Forecast" => replay::<v1::ForecastRequest, v1::ForecastResponse>(channel, folder, method).await,
        "Simulate" => replay::<v1::SimulateRequest, v1::SimulateResponse>(channel, folder, method).await,
        "ListSnapshots" => replay::<v1::ListSnapshotsRequest, v1::ListSnapshotsResponse>(channel, folder, method).await,
        "DownloadSnapshot" => replay::<v1::DownloadSnapshotRequest, v1::DownloadSnapshotResponse>(channel, folder, method).await,
        "GetHistory" => replay::<v1alpha1::GetHistoryRequest, v1alpha1::GetHistoryResponse>(channel, folder, method).await,
        "GetUsage" => replay::<v1alpha1::GetUsageRequest, v1alpha1::GetUsageResponse>(channel, folder, method).await,
        "UploadSnapshot" => replay::<v1::UploadSnapshotRequest, v1::UploadSnapshotResponse>(channel, folder, method).await,
        "RunSession" => replay::<v1::RunSessionRequest, v1::RunSessionResponse>(channel, folder, method).await,
        _ => Err("no such method".into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<ExitCode> {
    let [address, root] = [1, 2].map(|i| env::args().nth(i).expect("conformance ADDRESS FOLDER"));
    let channel = Endpoint::from_shared(format!("http://{address}"))?.connect_lazy();
    let (mut passed, mut failed) = (0, 0);
    for method in fs::read_dir(root)?.filter_map(Result::ok).filter(|entry| entry.path().is_dir()) {
        for vector in fs::read_dir(method.path())? {
            let vector = vector?.path();
            match replay_any(&channel, &vector).await {
                Ok(()) => passed += 1,
                Err(fault) => {
                    failed += 1;
                    println!("{}: {fault}", vector.display());
                }
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed > 0 || passed == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
