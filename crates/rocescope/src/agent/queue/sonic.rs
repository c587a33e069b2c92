//! A SONiC switch's database, asked now and then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use observe::queue::meter::Settings;
use rustix::time::{ClockId, clock_gettime};

use super::{Publisher, wait_until};
use crate::config::{QueueLimits, QueueMap};
use crate::pfc::RedisAddress;
use crate::queue::fresh_epochs;
use crate::queue::sonic::{SonicQueues, SonicQueuesSettings};

/// What is asked, and how often.
pub(super) struct Asked {
    pub redis: RedisAddress,
    pub poll_interval: Duration,
    pub maps: Vec<QueueMap>,
    pub limits: QueueLimits,
}

/// Asks until it is told to stop.
pub(super) fn poll(
    asked: &Asked,
    name: &str,
    settings: Settings,
    mut publisher: Publisher,
    stop: &AtomicBool,
) {
    let fresh = match fresh_epochs() {
        Ok(fresh) => fresh,
        Err(problem) => return tracing::error!("queue source {name}: {problem}"),
    };
    let sonic = SonicQueuesSettings {
        address: asked.redis.clone(),
        maps: asked.maps.clone(),
        within: Duration::from_millis(asked.limits.poll_timeout_ms),
        stale_ms_max: asked.limits.stale_ms_max,
    };
    let mut queues = SonicQueues::new(sonic, settings, fresh);
    let mut due = Instant::now();
    // Nothing is said twice: whether it answers, and whether there are samples.
    let (mut answers, mut samples) = (None, None);
    while !stop.load(Ordering::Relaxed) {
        let found = queues.poll(&monotonic_ns);
        publisher.publish(queues.rows(), queues.places());
        let counts = queues.counts();
        let measured = u64::try_from(queues.places().count()).unwrap_or(u64::MAX);
        publisher.counts.count(|numbers| {
            numbers.polls += 1;
            numbers.rows = counts.rows;
            numbers.queues = measured;
            match found {
                Ok(found) => {
                    numbers.connections += u64::from(numbers.connected == 0);
                    numbers.connected = 1;
                    numbers.events += found.samples;
                    numbers.absent += found.absent;
                }
                Err(_) => {
                    numbers.poll_failures += 1;
                    numbers.connected = 0;
                }
            }
        });
        match &found {
            Ok(found) => {
                if answers.replace(true) == Some(false) {
                    tracing::info!("queue source {name}: answers again");
                }
                let some = found.samples > 0;
                if samples.replace(some) != Some(some) && !some {
                    tracing::warn!(
                        "queue source {name}: no samples of {} queues: their fields are missing, \
                         old or not told apart, see docs/queue.md",
                        found.absent
                    );
                }
            }
            Err(problem) => {
                if answers.replace(false) != Some(false) {
                    tracing::warn!("queue source {name}: no samples: {problem}");
                }
            }
        }
        due += asked.poll_interval;
        // What was due meanwhile is not asked for later.
        due = due.max(Instant::now());
        if !wait_until(due, stop) {
            return;
        }
    }
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let ns = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}
