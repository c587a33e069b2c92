//! One device: reached, subscribed to or asked, and reached again.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode};
use store::{QueueEntry, QueueReceived};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use super::events::Events;
use super::http::{Answer, Asked, Http, Reach, Stream};
use super::intake::{self, Taken};
use super::restconf::{self, Filter, JSON, Notice, XRD};
use super::restraint::{Asking, Said, Telling};
use super::standing::{Connection, Device};
use crate::collector::clock::Clock;
use crate::collector::session::stopped;
use crate::collector::sink::Change;
use crate::collector::times::Times;
use crate::collector::writer::Writer;
use crate::config::{QueueDevice, QueueMode};
use crate::queue::tree::Node;

/// How long nothing is tried behind the first failure; it doubles with each.
const WAIT: Duration = Duration::from_secs(1);

/// A connection that was there for so long was no failure.
const HELD: Duration = Duration::from_secs(30);

/// A device that is asked though it should tell is subscribed to anew this often.
const SUBSCRIBE_AGAIN: Duration = Duration::from_secs(300);

/// The client of one device.
pub struct Client {
    pub config: QueueDevice,
    pub device: Arc<Device>,
    pub bounds: Bounds,
    pub clock: Clock,
    pub writer: Writer,
}

/// The bounds of each client.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub within: Duration,
    pub silent: Duration,
    pub reconnect_max: Duration,
    pub notifications_per_second_max: u64,
    pub octets_max: usize,
    pub entries_max: usize,
}

/// Why a device is not attended to any more.
enum Over {
    /// The program is ending.
    Gone,
    /// It is to be reached again, for this reason.
    Failed(String),
    /// It is to be reached again, and nothing is wrong.
    Again,
}

impl From<String> for Over {
    fn from(problem: String) -> Self {
        Self::Failed(problem)
    }
}

/// What a device can bring about by what it tells.
struct Restraint {
    asking: Asking,
    telling: Telling,
}

/// A device that is reached: its root, and what was had of it.
struct Session {
    reach: Arc<Reach>,
    http: Http,
    root: String,
    /// Which of the targets it answers, once that is known.
    target: Option<String>,
    etag: Option<HeaderValue>,
}

impl Client {
    /// Attends to the device until the program ends.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => {}
            () = self.attend() => {}
        }
    }

    async fn attend(&self) {
        let mut wait = WAIT;
        let mut last = None;
        // Over all sessions: a device may end them as it likes.
        let mut restraint = Restraint {
            asking: Asking::new(self.config.poll_interval.min(self.bounds.silent)),
            telling: Telling::new(),
        };
        loop {
            let began = Instant::now();
            let over = self.session(&mut restraint).await;
            let problem = match over {
                Err(Over::Gone) => return,
                Err(Over::Failed(problem)) => problem,
                Err(Over::Again) | Ok(()) => {
                    self.device.set(Connection::Absent, self.clock.now_ms(), None);
                    continue;
                }
            };
            Device::count(&self.device.failed);
            // QUE-con.1: a device that goes away has said nothing about its queues.
            self.device.set(Connection::Absent, self.clock.now_ms(), Some(problem.clone()));
            if last.as_ref() != Some(&problem) {
                warn!("device {}: {problem}; it is tried again", self.config.name);
                last = Some(problem);
            }
            if began.elapsed() >= HELD {
                wait = WAIT;
                last = None;
            }
            sleep(spread(wait)).await;
            wait = (wait * 2).min(self.bounds.reconnect_max);
        }
    }

    /// One session with the device, to its end.
    async fn session(&self, restraint: &mut Restraint) -> Result<(), Over> {
        let (config, bounds) = (self.config.clone(), self.bounds);
        let loading = tokio::task::spawn_blocking(move || {
            Reach::load(&config, bounds.within, bounds.octets_max)
        });
        let reach = Arc::new(loading.await.map_err(|error| error.to_string())??);
        let mut http = Http::connect(&reach).await?;
        let answer = http.ask(Asked::get(restconf::HOST_META, XRD)).await?;
        if answer.status != StatusCode::OK {
            let problem = restconf::problem(answer.status.as_u16(), &answer.body);
            return Err(format!("{}: {problem}, expected 200", restconf::HOST_META).into());
        }
        let text = String::from_utf8_lossy(&answer.body);
        let root = restconf::root(&text, &reach.authority)
            .map_err(|problem| format!("{}: {problem}", restconf::HOST_META))?;
        let mut session = Session { reach, http, root, target: None, etag: None };
        // What is there now; what came and went before is a gap.
        self.ask(&mut session).await?;
        Device::count(&self.device.connected);
        match self.config.mode {
            QueueMode::Poll => self.poll(&mut session, None).await,
            QueueMode::Subscribe => match self.subscribe(&mut session).await? {
                Ok(stream) => {
                    // A subscription begins by going on, whatever the one before did.
                    restraint.telling.goes_on();
                    self.follow(&mut session, stream, restraint).await
                }
                Err(refused) => {
                    let why = format!("no subscription, so it is asked: {refused}");
                    warn!("device {}: {why}", self.config.name);
                    self.poll(&mut session, Some(why)).await
                }
            },
        }
    }

    /// Asks now and then; for ever, or until it is time to subscribe again.
    async fn poll(&self, session: &mut Session, instead: Option<String>) -> Result<(), Over> {
        let interval = self.config.poll_interval;
        info!("device {}: asked every {} s", self.config.name, interval.as_secs());
        self.device.set(Connection::Polled, self.clock.now_ms(), instead.clone());
        let until = instead.map(|_| Instant::now() + SUBSCRIBE_AGAIN);
        loop {
            sleep(interval).await;
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(Over::Again);
            }
            self.ask(session).await?;
        }
    }

    /// Asks for all rows, and hands them over.
    async fn ask(&self, session: &mut Session) -> Result<(), Over> {
        let targets = match &session.target {
            Some(target) => vec![target.clone()],
            None => restconf::targets(&session.root).to_vec(),
        };
        let mut refused = String::new();
        let mut missing = false;
        for target in targets {
            let etag = session.etag.clone();
            let asked = Asked { etag: etag.as_ref(), ..Asked::get(&target, JSON) };
            let answer = session.asks(asked).await?;
            match answer.status {
                StatusCode::OK => {
                    let received_ms = self.clock.now_ms();
                    session.target = Some(target);
                    session.etag = answer.etag;
                    Device::count(&self.device.answers);
                    return self.hand_over(&read(&answer.body)?, received_ms).await;
                }
                StatusCode::NOT_MODIFIED => {
                    Device::count(&self.device.unchanged);
                    return Ok(());
                }
                // No interface, or none that may be read: there is no row. Whether the target is
                // one that the device knows cannot be told from that.
                StatusCode::NOT_FOUND | StatusCode::NO_CONTENT => missing = true,
                StatusCode::BAD_REQUEST | StatusCode::NOT_IMPLEMENTED => {
                    let problem = restconf::problem(answer.status.as_u16(), &answer.body);
                    refused = format!("{target}: {problem}, expected 200");
                }
                status => {
                    let problem = restconf::problem(status.as_u16(), &answer.body);
                    return Err(format!("{target}: {problem}, expected 200").into());
                }
            }
        }
        if missing { Ok(()) } else { Err(refused.into()) }
    }

    /// Asks to be told; inside, the stream, or why the device does not do that.
    async fn subscribe(&self, session: &mut Session) -> Result<Result<Stream, String>, Over> {
        let target = restconf::establish(&session.root);
        let mut refused = String::new();
        for filter in Filter::ALL {
            let body = restconf::subscription(filter);
            let asked = Asked { body: Some(&body), ..Asked::get(&target, JSON) };
            let Answer { status, body, .. } = session.asks(asked).await?;
            if status.is_success() {
                let path = restconf::stream(&body, &session.reach.authority)?;
                let stream = Http::connect(&session.reach).await?.stream(&path).await?;
                return Ok(Ok(stream));
            }
            refused = restconf::problem(status.as_u16(), &body);
            if !status.is_client_error() {
                break;
            }
        }
        Ok(Err(refused))
    }

    /// Takes what the device tells, until it ends.
    async fn follow(
        &self,
        session: &mut Session,
        mut stream: Stream,
        restraint: &mut Restraint,
    ) -> Result<(), Over> {
        info!("device {}: subscribed to", self.config.name);
        self.device.set(Connection::Subscribed, self.clock.now_ms(), None);
        let mut events = Events::new(self.bounds.octets_max);
        let mut times = Times::new(self.bounds.silent, std::time::Instant::now());
        loop {
            self.tell(&mut restraint.telling);
            let now = std::time::Instant::now();
            if restraint.asking.take(now) {
                self.ask(session).await?;
            }
            let due = [restraint.asking.due(now), restraint.telling.due()].into_iter().flatten();
            let due =
                due.min().map_or(self.bounds.silent, |due| due.saturating_duration_since(now));
            let octets = match timeout(due.min(self.bounds.silent), stream.next()).await {
                Ok(octets) => octets?,
                Err(_) if due < self.bounds.silent => continue,
                Err(_) => {
                    // Nothing may have happened, or nobody may be there.
                    self.ask(session).await?;
                    continue;
                }
            };
            let Some(octets) = octets else {
                return Err("the stream of notifications has ended".to_owned().into());
            };
            let received_ms = self.clock.now_ms();
            let whole = events.take(&octets).map_err(|long| {
                format!(
                    "a notification of more than {} octets, limits.queue_octets_max",
                    long.octets_max
                )
            })?;
            let count = u64::try_from(whole.len()).unwrap_or(u64::MAX);
            for event in whole {
                Device::count(&self.device.notifications);
                let event = read(&event)?;
                self.hand_over(&event, received_ms).await?;
                self.heed(restraint, restconf::notice(&event))?;
            }
            let most = self.bounds.notifications_per_second_max;
            sleep(times.ahead(count, most, std::time::Instant::now())).await;
        }
    }

    /// What a notification means. Where rows have to be asked for, that is done between notifications.
    // QUE-con.1
    fn heed(&self, restraint: &mut Restraint, notice: Notice) -> Result<(), Over> {
        let now_ms = self.clock.now_ms();
        match notice {
            Notice::Nothing => return Ok(()),
            Notice::Incomplete => {
                Device::count(&self.device.incomplete);
                restraint.asking.owe();
            }
            Notice::Terminated(reason) => {
                return Err(format!("the subscription was terminated: {reason}").into());
            }
            Notice::Suspended(reason) => {
                Device::count(&self.device.suspended);
                let problem = format!("the subscription is suspended: {reason}");
                self.device.set(Connection::Subscribed, now_ms, Some(problem));
                restraint.telling.suspended(reason);
            }
            Notice::Resumed => {
                self.device.set(Connection::Subscribed, now_ms, None);
                restraint.telling.goes_on();
                restraint.asking.owe();
            }
        }
        self.tell(&mut restraint.telling);
        Ok(())
    }

    fn tell(&self, telling: &mut Telling) {
        let name = &self.config.name;
        match telling.take(std::time::Instant::now()) {
            None => {}
            Some(Said::Suspended(reason, 0)) => {
                warn!("device {name}: the subscription is suspended: {reason}");
            }
            Some(Said::Suspended(reason, before)) => {
                warn!(
                    "device {name}: the subscription is suspended: {reason} (and {before} times \
                     before, which were not told)"
                );
            }
            Some(Said::GoesOn) => info!("device {name}: the subscription goes on"),
        }
    }

    /// Hands what stands in a document to the store, once there is room.
    async fn hand_over(&self, document: &Node, received_ms: u64) -> Result<(), Over> {
        let Taken { entries, findings } = intake::entries(document, self.bounds.entries_max);
        if let Some(first) = findings.first() {
            let count = u64::try_from(findings.len()).unwrap_or(u64::MAX);
            let before =
                self.device.findings.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
            // The first of them is told, the others are counted.
            if before == 0 {
                warn!("device {}: left out: {}", self.config.name, restconf::said(first));
            }
        }
        let count = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        let change = |entry: QueueEntry| {
            let device = self.device.name.clone();
            Change::Queue(Box::new(QueueReceived { device, received_ms, entry }))
        };
        let changes = entries.into_iter().map(change).collect();
        self.writer.keep_queues(changes).await.map_err(|_| Over::Gone)?;
        self.device.entries.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
}

/// A document.
fn read(octets: &[u8]) -> Result<Node, String> {
    intake::read(octets).map_err(|problem| format!("what it sends is {problem}"))
}

impl Session {
    /// Asks over the connection; over another one where the device has closed it.
    async fn asks(&mut self, asked: Asked<'_>) -> Result<Answer, String> {
        if !self.http.is_open() {
            self.http = Http::connect(&self.reach).await?;
        }
        self.http.ask(asked).await
    }
}

/// Somewhere between half of a time and all of it, so that not all clients come at once.
fn spread(time: Duration) -> Duration {
    let mut random = [0; 4];
    // Without randomness they do, which is no harm to one device.
    _ = getrandom::fill(&mut random);
    time / 2 + time.mul_f64(f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX) / 2.0)
}
