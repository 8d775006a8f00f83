//! A small batch platform that leaves every fair-share decision to Apportion: who enters, who runs, who gives way.

use std::{env, error::Error, fs, time::Duration};

use apportion::v1::{self, answer::Answer, decision_service_client::DecisionServiceClient, event::Event, step::Step};
use apportion::{Session, again, evict, fault, from_json, input, refusal, run, steps, unexpected, until};
use tokio::time::Instant;
use tonic::{Response, Status, transport::Channel, transport::Endpoint};
use v1::{EnqueueMode, JobPhase, TaskStatus, Vote, order_step::Subject};

/// Keeps its records in the contract's own messages, so that a snapshot is always at hand.
struct Platform {
    service: DecisionServiceClient<Channel>,
    policy: v1::Policy,
    snapshot: v1::Snapshot,
    within: Duration,
}

impl Platform {
    /// Takes a job unless it could not enter even an empty cluster.
    async fn submit(&mut self, job: v1::Job) {
        let alone = v1::Snapshot { jobs: vec![job.clone()], ..self.snapshot.clone() };
        let end = Instant::now() + self.within;
        let request = v1::CheckEnqueueRequest { input: input(alone, self.policy.clone()), enqueue: None };
        let response = again(end, async || self.service.check_enqueue(until(end, request.clone())).await).await;
        let refused = match response.map(Response::into_inner) {
            Ok(v1::CheckEnqueueResponse { basis, enqueue }) => {
                refusal(enqueue.unwrap_or_default().jobs[0].verdict.as_ref(), &basis.unwrap_or_default().dimensions)
            }
            Err(error) => Some(fault(&error)),
        };
        match refused {
            Some(grounds) => println!("refuse {}: {grounds}", job.uid),
            None => self.snapshot.jobs.push(job),
        }
    }

    /// Admits jobs, then places tasks, queue by queue. What is not decided in time waits for the next cycle.
    async fn cycle(&mut self) -> Result<(), Status> {
        let end = Instant::now() + self.within;
        let mut session = Session::open(&self.service, self.snapshot.clone(), self.policy.clone(), end).await?;
        let enqueue = Step::Enqueue(v1::EnqueueStep { mode: EnqueueMode::Action as i32, ..Default::default() });
        let questions = [enqueue, steps::order(Subject::Queues(Default::default())), steps::order(Subject::Jobs(Default::default()))];
        let [Answer::Enqueue(enqueue), Answer::Order(queues), Answer::Order(jobs)] = session.ask(questions).await? else {
            return Err(unexpected());
        };
        for decided in enqueue.jobs {
            if let Some(grounds) = refusal(decided.verdict.as_ref(), session.dimensions()) {
                println!("hold {}: {grounds}", decided.uid);
            } else {
                println!("enqueue {}", decided.uid);
                self.snapshot.jobs[decided.job as usize].set_phase(JobPhase::Inqueue);
            }
        }
        for queue in queues.items {
            for &number in &jobs.items {
                let job = &self.snapshot.jobs[number as usize];
                if job.queue == self.snapshot.queues[queue as usize].name && job.phase() == JobPhase::Inqueue {
                    self.place(&mut session, number as usize).await?;
                }
            }
        }
        Ok(())
    }

    /// Runs a job's pending tasks where they fit, evicting others while it starves. A gang below its minimum is undone.
    async fn place(&mut self, session: &mut Session, number: usize) -> Result<(), Status> {
        let job = &self.snapshot.jobs[number];
        let standing = || steps::jobs(std::slice::from_ref(&job.uid));
        let [Answer::Mark(mark)] = session.ask([Step::Mark(v1::MarkStep {})]).await? else { return Err(unexpected()) };
        let (mut placed, mut evicted) = (vec![], vec![]);
        for task in job.groups.iter().flat_map(|group| &group.tasks).filter(|task| task.node.is_none()) {
            let uid = std::slice::from_ref(&task.uid);
            let place = || steps::nodes(uid, 1);
            let questions = [steps::allocatable(uid), steps::preemptive(uid), steps::reclaim(uid), standing(), place()];
            let [Answer::Allocatable(may), Answer::Preemptive(may_take), Answer::Reclaim(reclaim), Answer::Jobs(is), Answer::Nodes(nodes)] =
                session.ask(questions).await?
            else {
                return Err(unexpected());
            };
            if let Some(grounds) = refusal(may.tasks[0].verdict.as_ref(), session.dimensions()) {
                println!("wait {}: {grounds}", task.uid);
                break;
            }
            let mut node = nodes.tasks[0].nodes.first().copied();
            let starving = is.jobs[0].starving.as_ref().is_some_and(|verdict| verdict.vote() == Vote::Permit);
            let may_take = starving && refusal(may_take.tasks[0].verdict.as_ref(), session.dimensions()).is_none();
            let mut victims = reclaim.evictions.into_iter().filter(|_| may_take);
            while let (None, Some(victim)) = (node, victims.next()) {
                let [_, Answer::Nodes(nodes)] = session.ask([evict(victim), place()]).await? else { return Err(unexpected()) };
                node = nodes.tasks[0].nodes.first().copied();
                evicted.push(victim);
            }
            let Some(node) = node else {
                println!("wait {}: no node has room", task.uid);
                break;
            };
            session.ask([run(uid, node)]).await?;
            placed.push((task.uid.clone(), node));
        }
        let [Answer::Jobs(is)] = session.ask([standing()]).await? else { return Err(unexpected()) };
        if refusal(is.jobs[0].ready.as_ref(), session.dimensions()).is_some() {
            session.ask([Step::Rollback(v1::RollbackStep { mark: mark.mark })]).await?;
            return Ok(());
        }
        let mut tasks: Vec<_> = self.snapshot.jobs.iter_mut().flat_map(|job| &mut job.groups).flat_map(|group| &mut group.tasks).collect();
        for victim in evicted {
            let task = &mut tasks[victim as usize];
            println!("evict {}", task.uid);
            (task.node, task.status) = (None, TaskStatus::Pending as i32);
        }
        for (uid, node) in placed {
            println!("run {uid} on {}", self.snapshot.nodes[node as usize].name);
            let task = tasks.iter_mut().find(|task| task.uid == uid).expect("a task of this job");
            (task.node, task.status) = (Some(node), TaskStatus::Running as i32);
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [address, file] = [1, 2].map(|i| env::args().nth(i).expect("batch ADDRESS SCENARIO [SECONDS]"));
    let seconds = env::args().nth(3).map_or(Ok(10.0), |seconds| seconds.parse())?;
    let scenario: v1::SimulateRequest = from_json("apportion.v1.SimulateRequest", &fs::read_to_string(file)?)?;
    let service = DecisionServiceClient::new(Endpoint::from_shared(format!("http://{address}"))?.connect_lazy());
    let world = scenario.input.ok_or("the scenario has no input")?;
    let (Some(v1::input::Source::Snapshot(snapshot)), Some(v1::input::Rule::Policy(policy))) = (world.source, world.rule) else {
        return Err("the scenario has no snapshot and policy of its own".into());
    };
    let mut platform = Platform { service, policy, snapshot, within: Duration::from_secs_f64(seconds) };
    for step in scenario.steps {
        match step.step {
            Some(Step::Event(v1::Event { event: Some(Event::Change(change)) })) => {
                for job in change.jobs {
                    platform.submit(job).await;
                }
                platform.snapshot.jobs.retain(|job| !change.remove_jobs.contains(&job.uid));
            }
            _ => {
                if let Err(error) = platform.cycle().await {
                    println!("cut short: {}", fault(&error));
                }
            }
        }
    }
    Ok(())
}
