//! The stubs, and what a client of Apportion wants beside them: a session that is asked like a function, errors and reasons in words, and
//! protobuf's JSON.

use std::{error::Error, sync::LazyLock, time::Duration};

use prost_reflect::{DescriptorPool, DynamicMessage};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status, Streaming, transport::Channel};
use tonic_types::StatusExt;

use v1::{
    answer::Answer, apportion_service_client::ApportionServiceClient, run_session_request as request, run_session_response as response,
};

pub mod v1 {
    tonic::include_proto!("apportion.v1");
}

/// A conversation about one snapshot: each question sees what the steps before it changed.
pub struct Session {
    pub dimensions: Vec<String>,
    requests: mpsc::Sender<v1::RunSessionRequest>,
    responses: Streaming<v1::RunSessionResponse>,
}

impl Session {
    pub async fn open(
        service: &mut ApportionServiceClient<Channel>,
        snapshot: v1::Snapshot,
        policy: v1::Policy,
        within: Duration,
    ) -> Result<Self, Status> {
        let (requests, outgoing) = mpsc::channel(1);
        let open = v1::OpenSession {
            source: Some(v1::open_session::Source::Snapshot(snapshot)),
            rule: Some(v1::open_session::Rule::Policy(policy)),
        };
        let open = v1::RunSessionRequest { message: Some(request::Message::Open(open)) };
        requests.send(open).await.map_err(|_| ended())?;
        let mut call = Request::new(ReceiverStream::new(outgoing));
        call.set_timeout(within);
        let mut responses = service.run_session(call).await?.into_inner();
        match responses.message().await?.and_then(|response| response.message) {
            Some(response::Message::Opened(opened)) => {
                Ok(Self { dimensions: opened.basis.unwrap_or_default().dimensions, requests, responses })
            }
            _ => Err(ended()),
        }
    }

    /// Returns one answer for each step. A step that fails is a fault of this program.
    pub async fn ask<const N: usize>(&mut self, steps: [v1::step::Step; N]) -> Result<[Answer; N], Status> {
        let steps = steps.map(|step| v1::Step { step: Some(step) }).to_vec();
        let batch = v1::RunSessionRequest { message: Some(request::Message::Batch(v1::StepBatch { id: 0, steps })) };
        self.requests.send(batch).await.map_err(|_| ended())?;
        loop {
            let response = self.responses.message().await?.ok_or_else(ended)?;
            let Some(response::Message::Answers(batch)) = response.message else { continue };
            let answers: Vec<Answer> = batch.answers.into_iter().filter_map(|answer| answer.answer).collect();
            if let Some(Answer::Error(error)) = answers.iter().find(|answer| matches!(answer, Answer::Error(_))) {
                panic!("{}", error.message);
            }
            return answers.try_into().map_err(|_| ended());
        }
    }
}

fn ended() -> Status {
    Status::unavailable("the session has ended")
}

/// For an answer of another kind than its question.
pub fn unexpected() -> Status {
    Status::internal("an answer is of another kind than its question")
}

/// What the details of a failed call say.
pub fn fault(error: &Status) -> String {
    let details = error.get_error_details();
    let Some(info) = details.error_info() else {
        // The call did not come to the server, or not back. A deadline that passes on this side is a cancellation to tonic.
        let mut causes = std::iter::successors(error.source(), |&cause| cause.source());
        let late = causes.any(|cause| cause.is::<tonic::TimeoutExpired>());
        return name(if late { tonic::Code::DeadlineExceeded } else { error.code() });
    };
    let violations = details.bad_request().into_iter().flat_map(|bad| &bad.field_violations);
    violations.fold(info.reason.clone(), |text, violation| format!("{text}, {}: {}", violation.field, violation.description))
}

fn name(code: tonic::Code) -> String {
    let words = format!("{code:?}");
    let underscored = words.char_indices().flat_map(|(i, c)| (i > 0 && c.is_uppercase()).then_some('_').into_iter().chain([c]));
    underscored.collect::<String>().to_uppercase()
}

/// The first reason of a verdict, if it is a refusal.
pub fn refusal(verdict: Option<&v1::Verdict>, dimensions: &[String]) -> Option<String> {
    let reason = &verdict.filter(|verdict| verdict.vote() == v1::Vote::Reject)?.reasons[0];
    // An unknown code: only a newer version knows it.
    let code = v1::ReasonCode::try_from(reason.code).map_or_else(|_| reason.code.to_string(), |code| code.as_str_name().to_owned());
    let numbers = |i: u32| format!(", {}: {} + {} > {}", dimensions[i as usize], reason.have, reason.need, reason.limit);
    Some(format!("{} {code}{}", reason.plugin, reason.dimension.map_or_else(String::new, numbers)))
}

/// A message of the contract from protobuf's JSON, which prost does not read by itself.
pub fn from_json<M: prost::Message + Default>(name: &str, text: &str) -> Result<M, Box<dyn Error>> {
    static CONTRACT: LazyLock<DescriptorPool> = LazyLock::new(|| {
        DescriptorPool::decode(include_bytes!(concat!(env!("OUT_DIR"), "/contract.binpb")).as_slice()).expect("made by build.rs")
    });
    let kind = CONTRACT.get_message_by_name(name).ok_or("no such message")?;
    let mut json = serde_json::Deserializer::from_str(text);
    Ok(DynamicMessage::deserialize(kind, &mut json)?.transcode_to()?)
}
