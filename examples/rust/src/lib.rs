//! The stubs, and what a client of Apportion wants beside them: a session that is asked like a function and outlives its replica, a second
//! attempt where that helps, errors and reasons in words, and protobuf's JSON.

use std::{error::Error, sync::LazyLock, time::Duration};

use prost_reflect::{DescriptorPool, DynamicMessage};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, Streaming, transport::Channel};
use tonic_types::StatusExt;

use v1::{
    answer::Answer, decision_service_client::DecisionServiceClient, event::Event, run_session_request::Message as Said,
    run_session_response::Message as Heard, step::Step,
};

pub mod v1 {
    tonic::include_proto!("apportion.v1");
}

pub mod v1alpha1 {
    tonic::include_proto!("apportion.v1alpha1");
}

const ATTEMPTS: usize = 5;

/// What a call answers, made again while servers are busy or lost, until the end: no call changes anything there.
pub async fn again<T>(end: Instant, mut call: impl AsyncFnMut() -> Result<T, Status>) -> Result<T, Status> {
    let mut attempt = 1;
    loop {
        let late = |_| Err(Status::deadline_exceeded("no time is left"));
        let error = match timeout_at(end, call()).await.unwrap_or_else(late) {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match retry_delay(&error) {
            Some(pause) if attempt < ATTEMPTS && Instant::now() + pause < end => sleep(pause).await,
            _ => return Err(error),
        }
        attempt += 1;
    }
}

// / A request with a deadline that the server knows.
pub fn until<M>(end: Instant, message: M) -> Request<M> {
    let mut request = Request::new(message);
    request.set_timeout(end.saturating_duration_since(Instant::now()));
    request
}

/// After how long to ask again; `None`: asking again does not help.
fn retry_delay(error: &Status) -> Option<Duration> {
    let told = error.get_details_retry_info().and_then(|info| info.retry_delay);
    told.or((error.code() == Code::Unavailable).then_some(Duration::from_millis(100)))
}

/// A conversation about one snapshot: each question sees what the steps before it changed. Where its replica is lost or sends it away, it
/// goes on at another one, after the steps that changed something were done again.
pub struct Session {
    service: DecisionServiceClient<Channel>,
    open: v1::OpenSession,
    end: Instant,
    basis: Option<v1::Basis>,
    changes: Vec<v1::Step>,
    stream: Option<(mpsc::Sender<v1::RunSessionRequest>, Streaming<v1::RunSessionResponse>)>,
    going_away: bool,
}

impl Session {
    /// Opens a session that must be over at the end.
    pub async fn open(
        service: &DecisionServiceClient<Channel>,
        snapshot: v1::Snapshot,
        policy: v1::Policy,
        end: Instant,
    ) -> Result<Self, Status> {
        let input = v1::Input {
            source: Some(v1::input::Source::Snapshot(snapshot)),
            rule: Some(v1::input::Rule::Policy(policy)),
            ..Default::default()
        };
        let open = v1::OpenSession { input: Some(input), chunked: None };
        let service = service.clone();
        let mut session = Self { service, open, end, basis: None, changes: vec![], stream: None, going_away: false };
        again(end, async || session.restore().await).await?;
        Ok(session)
    }

    pub fn dimensions(&self) -> &[String] {
        self.basis.as_ref().map_or(&[], |basis| &basis.dimensions)
    }

    /// Returns one answer for each step. A step that fails is a fault of this program.
    pub async fn ask<const N: usize>(&mut self, steps: [Step; N]) -> Result<[Answer; N], Status> {
        let steps = steps.map(|step| v1::Step { step: Some(step) });
        let batch = v1::StepBatch { id: 0, steps: steps.to_vec() };
        let answers = again(self.end, async || self.answered(batch.clone()).await).await?;
        self.changes.extend(steps.into_iter().zip(&answers).filter(|(_, answer)| answer.changed).map(|(step, _)| step));
        let answers: Vec<_> = answers.into_iter().filter_map(|answer| answer.answer).collect();
        if let Some(Answer::Error(error)) = answers.iter().find(|answer| matches!(answer, Answer::Error(_))) {
            panic!("{}", error.message);
        }
        answers.try_into().map_err(|_| unexpected())
    }

    async fn answered(&mut self, batch: v1::StepBatch) -> Result<Vec<v1::Answer>, Status> {
        if self.stream.is_none() {
            self.restore().await?;
        }
        let Heard::Answers(batch) = self.exchange(Said::Batch(batch)).await? else { return Err(unexpected()) };
        if self.going_away {
            self.stream = None;
        }
        Ok(batch.answers)
    }

    async fn restore(&mut self) -> Result<(), Status> {
        let (requests, outgoing) = mpsc::channel(1);
        // The server answers the call once it has read the snapshot.
        requests.send(said(Said::Open(self.open.clone()))).await.map_err(|_| ended())?;
        let responses = self.service.run_session(until(self.end, ReceiverStream::new(outgoing))).await?.into_inner();
        (self.stream, self.going_away) = (Some((requests, responses)), false);
        let Heard::Opened(opened) = self.hear().await? else { return Err(unexpected()) };
        let now = opened.basis.unwrap_or_default();
        let was = self.basis.get_or_insert_with(|| now.clone());
        if was.policy_digest != now.policy_digest || was.engine_version != now.engine_version {
            self.stream = None;
            return Err(Status::aborted("policy or engine are others where the session should have gone on: begin anew"));
        }
        if self.changes.is_empty() {
            return Ok(());
        }
        let repeated = self.exchange(Said::Batch(v1::StepBatch { id: 0, steps: self.changes.clone() })).await?;
        if !matches!(repeated, Heard::Answers(batch) if batch.answers.iter().all(|answer| answer.changed)) {
            self.stream = None;
            return Err(Status::aborted("a step that succeeded before is refused: begin anew"));
        }
        Ok(())
    }

    /// Says something, and returns what answers it.
    async fn exchange(&mut self, message: Said) -> Result<Heard, Status> {
        if let Some((requests, _)) = &self.stream {
            // If that fails, the stream has ended; receiving returns the reason.
            let _ = requests.send(said(message)).await;
        }
        self.hear().await
    }

    async fn hear(&mut self) -> Result<Heard, Status> {
        loop {
            let Some((_, responses)) = &mut self.stream else { return Err(ended()) };
            match responses.message().await {
                Ok(Some(v1::RunSessionResponse { message: Some(Heard::GoingAway(_)) })) => self.going_away = true,
                Ok(Some(v1::RunSessionResponse { message: Some(heard) })) => return Ok(heard),
                Ok(Some(_)) => {} // Only a newer version knows it.
                failed => {
                    self.stream = None;
                    return Err(failed.err().unwrap_or_else(ended));
                }
            }
        }
    }
}

fn said(message: Said) -> v1::RunSessionRequest {
    v1::RunSessionRequest { message: Some(message) }
}

fn ended() -> Status {
    Status::unavailable("the session was ended")
}

/// For an answer of another kind than its question.
pub fn unexpected() -> Status {
    Status::internal("an answer is of another kind than its question")
}

/// A question about a snapshot and a policy.
pub fn input(snapshot: v1::Snapshot, policy: v1::Policy) -> Option<v1::Input> {
    Some(v1::Input {
        source: Some(v1::input::Source::Snapshot(snapshot)),
        rule: Some(v1::input::Rule::Policy(policy)),
        ..Default::default()
    })
}

/// Tasks by their uids.
pub fn tasks(uid: &[String]) -> Option<v1::Selector> {
    Some(v1::Selector { names: uid.to_vec(), ..Default::default() })
}

/// An event as a step.
pub fn happened(event: Event) -> Step {
    Step::Event(v1::Event { event: Some(event) })
}

/// Reports that a task runs on a node.
pub fn run(uid: &[String], node: u32) -> Step {
    let nodes = Some(v1::Selector { indices: vec![node], ..Default::default() });
    happened(Event::Place(v1::Placement { tasks: tasks(uid), nodes }))
}

/// A change that evicts a task, which waits again then.
pub fn evict(task: u32) -> Step {
    let gone = v1::TaskUpdate {
        task: Some(v1::task_update::Task::Number(task)),
        status: v1::TaskStatus::Pending as i32,
        place: Some(v1::task_update::Place::NoNode(true)),
    };
    happened(Event::Change(v1::Change { tasks: vec![gone], ..Default::default() }))
}

/// Steps that name only the subject of each question.
pub mod steps {
    use super::{Step, tasks, v1};

    pub fn order(subject: v1::order_step::Subject) -> Step {
        Step::Order(v1::OrderStep { subject: Some(subject), ..Default::default() })
    }

    pub fn jobs(uid: &[String]) -> Step {
        Step::Jobs(v1::JobsStep { jobs: Some(v1::Selector { names: uid.to_vec(), ..Default::default() }), ..Default::default() })
    }

    pub fn allocatable(uid: &[String]) -> Step {
        Step::Allocatable(v1::AllocatableStep { tasks: tasks(uid), ..Default::default() })
    }

    pub fn preemptive(uid: &[String]) -> Step {
        Step::Preemptive(v1::PreemptiveStep { tasks: tasks(uid), ..Default::default() })
    }

    pub fn reclaim(claimant: &[String]) -> Step {
        Step::Reclaim(v1::ReclaimStep { claimant: tasks(claimant), ..Default::default() })
    }

    pub fn nodes(uid: &[String], top: u32) -> Step {
        Step::Nodes(v1::NodesStep { tasks: tasks(uid), top, ..Default::default() })
    }
}

/// What the details of a failed call say.
pub fn fault(error: &Status) -> String {
    let details = error.get_error_details();
    let Some(info) = details.error_info() else {
        // The call did not come to the server, or not back. A deadline that passes on this side is a cancellation to tonic.
        let mut causes = std::iter::successors(error.source(), |&cause| cause.source());
        let late = causes.any(|cause| cause.is::<tonic::TimeoutExpired>());
        return name(if late { Code::DeadlineExceeded } else { error.code() });
    };
    let violations = details.bad_request().into_iter().flat_map(|bad| &bad.field_violations);
    violations.fold(info.reason.clone(), |text, violation| format!("{text}, {}: {}", violation.field, violation.description))
}

fn name(code: Code) -> String {
    let words = format!("{code:?}");
    let underscored = words.char_indices().flat_map(|(i, c)| (i > 0 && c.is_uppercase()).then_some('_').into_iter().chain([c]));
    underscored.collect::<String>().to_uppercase()
}

/// The first cause of a verdict, if it is a refusal.
pub fn refusal(verdict: Option<&v1::Verdict>, dimensions: &[String]) -> Option<String> {
    let cause = &verdict.filter(|verdict| verdict.vote() != v1::Vote::Permit)?.causes[0];
    // An unknown code: only a newer version knows it.
    let code = v1::CauseCode::try_from(cause.code).map_or_else(|_| cause.code.to_string(), |code| code.as_str_name().to_owned());
    let numbers = |i: &u32| format!(", {}: {} + {} > {}", dimensions[*i as usize], cause.have, cause.need, cause.limit);
    Some(format!("{} {code}{}", cause.plugin, cause.dimensions.first().map_or_else(String::new, numbers)))
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
