//! NETCONF over SSH (RFC 6242): the subsystem `netconf`, users by public key, and nothing else.
//!
//! There is no shell, no forwarding and no password. What a session says is decided by
//! [`manage::netconf`]; here are connections, deadlines and what waits for a reader: a session whose
//! client does not read gets no further request read, and ends when its time is over.
// QUE-pub.2, QUE-sec.1

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use manage::netconf::{End, Limits, Session, Then, World};
use russh::keys::ssh_key::PublicKey;
use russh::keys::{PrivateKey, load_secret_key};
use russh::server::{
    Auth, ChannelOpenHandle, Config, Handler, Msg, PublicKeyOffer, VerifiedPublicKey, run_stream,
};
use russh::{Channel, ChannelId, Disconnect, MethodKind, MethodSet, server};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::Managed;
use crate::config::printable;
use crate::serve::paced::Paced;

/// Sessions of one connection, at most.
const OF_CONNECTION_MAX: usize = 4;

/// How long the listener rests when the system gives no connection.
const REST: Duration = Duration::from_millis(100);

/// Octets that are read at once.
const READ_OCTETS: usize = 16 << 10;

/// How NETCONF is served.
pub struct Settings {
    /// The key that the server shows.
    pub host_key: PrivateKey,
    /// The keys of each user.
    pub users: Vec<(String, Vec<PublicKey>)>,
    /// Connections at one time.
    pub connections_max: usize,
    /// Sessions at one time.
    pub sessions_max: usize,
    /// Octets of a message of a client.
    pub message_octets_max: usize,
    /// For a client to be known and to say hello, each.
    pub greeting_within: Duration,
    /// For what is sent to be taken.
    pub taken_within: Duration,
    /// Without a request and without a subscription.
    pub idle_max: Duration,
}

/// Reads a private key: OpenSSH's or PKCS#8, without a password.
///
/// # Errors
/// Why it cannot be used.
pub fn host_key(path: &Path) -> Result<PrivateKey, String> {
    load_secret_key(path, None).map_err(|error| error.to_string())
}

/// Reads public keys, one a line as in OpenSSH's `authorized_keys` but without options.
///
/// # Errors
/// The first line that is no key.
pub fn public_keys(text: &str) -> Result<Vec<PublicKey>, String> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
    let keys: Vec<PublicKey> = lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            PublicKey::from_openssh(line).map_err(|error| {
                format!("line {number}: {error}; expected a public key of OpenSSH without options")
            })
        })
        .collect::<Result<_, _>>()?;
    if keys.is_empty() { Err("no key in it, expected at least one".into()) } else { Ok(keys) }
}

/// Everything that connections share.
struct Shared {
    managed: Arc<Managed>,
    settings: Settings,
    ssh: Arc<Config>,
    sessions: Arc<Semaphore>,
    next: AtomicU32,
    /// How each session is told to end.
    kills: Mutex<HashMap<u32, Arc<Notify>>>,
}

/// Accepts connections until it is told to stop.
pub async fn serve(
    listener: TcpListener,
    managed: Arc<Managed>,
    settings: Settings,
    mut stop: watch::Receiver<bool>,
) {
    let connections = Arc::new(Semaphore::new(settings.connections_max));
    let ssh = Arc::new(Config {
        methods: MethodSet::from(&[MethodKind::PublicKey][..]),
        keys: vec![settings.host_key.clone()],
        auth_rejection_time: Duration::from_secs(1),
        auth_rejection_time_initial: Some(Duration::ZERO),
        max_auth_attempts: 6,
        inactivity_timeout: None,
        keepalive_interval: Some(settings.taken_within),
        keepalive_max: 2,
        nodelay: true,
        ..Config::default()
    });
    let shared = Arc::new(Shared {
        managed,
        sessions: Arc::new(Semaphore::new(settings.sessions_max)),
        settings,
        ssh,
        next: AtomicU32::new(1),
        kills: Mutex::default(),
    });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let Ok((stream, peer)) = accepted else {
            sleep(REST).await;
            continue;
        };
        let Ok(permit) = connections.clone().try_acquire_owned() else {
            tracing::warn!("{peer}: as many connections for NETCONF as there may be");
            continue;
        };
        let (shared, stop) = (shared.clone(), stop.clone());
        tokio::spawn(async move {
            if let Err(problem) = connection(shared, stream, peer, stop).await {
                tracing::info!("{peer}: {}", printable(&problem));
            }
            drop(permit);
        });
    }
}

async fn connection(
    shared: Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    mut stop: watch::Receiver<bool>,
) -> Result<(), String> {
    let known = Arc::new(AtomicBool::new(false));
    let client = Client {
        shared: shared.clone(),
        peer,
        user: None,
        known: known.clone(),
        channels: HashMap::new(),
        sessions: 0,
    };
    let within = shared.settings.greeting_within;
    // What is not taken in time ends the connection, whatever waits above it.
    let stream = Paced::new(stream, shared.settings.taken_within);
    let greeted = timeout(within, run_stream(shared.ssh.clone(), stream, client)).await;
    let mut running = greeted
        .map_err(|_| "no SSH in time".to_owned())?
        .map_err(|error| format!("SSH: {error}"))?;
    let handle = running.handle();
    let unknown = async {
        sleep(within).await;
        if known.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    let words = tokio::select! {
        ended = &mut running => return ended.map_err(|error| format!("SSH: {error}")),
        () = unknown => "no user in time",
        _ = stop.wait_for(|stop| *stop) => "the agent stops",
    };
    let told = handle.disconnect(Disconnect::ByApplication, words.into(), String::new());
    _ = timeout(Duration::from_secs(1), told).await;
    Ok(())
}

/// One SSH connection.
struct Client {
    shared: Arc<Shared>,
    peer: SocketAddr,
    user: Option<String>,
    known: Arc<AtomicBool>,
    channels: HashMap<ChannelId, Channel<Msg>>,
    sessions: usize,
}

impl Client {
    fn may(&self, user: &str, key: &PublicKey) -> Auth {
        let users = &self.shared.settings.users;
        let known = users.iter().any(|(name, keys)| {
            name == user && keys.iter().any(|known| known.key_data() == key.key_data())
        });
        if known { Auth::Accept } else { Auth::reject() }
    }
}

impl Handler for Client {
    type Error = russh::Error;

    async fn auth_publickey_offered(
        &mut self,
        user: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        Ok(self.may(user, offer.public_key))
    }

    async fn auth_publickey(
        &mut self,
        user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        let may = self.may(user, key.public_key);
        if may == Auth::Accept {
            self.user = Some(user.to_owned());
            self.known.store(true, Ordering::Relaxed);
        }
        Ok(may)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut server::Session,
    ) -> Result<(), Self::Error> {
        if self.channels.len() < OF_CONNECTION_MAX {
            self.channels.insert(channel.id(), channel);
            reply.accept().await;
        }
        // Dropped, it is refused.
        Ok(())
    }

    async fn channel_close(
        &mut self,
        channel: ChannelId,
        _: &mut server::Session,
    ) -> Result<(), Self::Error> {
        self.channels.remove(&channel);
        Ok(())
    }

    async fn subsystem_request(
        &mut self,
        id: ChannelId,
        name: &str,
        ssh: &mut server::Session,
    ) -> Result<(), Self::Error> {
        let refused = |ssh: &mut server::Session| ssh.channel_failure(id);
        let Some(user) = self.user.clone().filter(|_| name == "netconf") else {
            return refused(ssh);
        };
        if self.sessions >= OF_CONNECTION_MAX {
            return refused(ssh);
        }
        let Ok(permit) = self.shared.sessions.clone().try_acquire_owned() else {
            tracing::warn!("{}: as many sessions of NETCONF as there may be", self.peer);
            return refused(ssh);
        };
        let Some(channel) = self.channels.remove(&id) else { return refused(ssh) };
        self.sessions += 1;
        ssh.channel_success(id)?;
        let (shared, peer) = (self.shared.clone(), self.peer);
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(channel.into_stream());
            session(&shared, &user, peer, reader, writer, permit).await;
        });
        Ok(())
    }
}

/// Why a session is at its end.
enum Ended {
    /// The client said so.
    InOrder,
    /// For another reason.
    Dropped(String),
}

/// One session of NETCONF, from hello to its end.
async fn session(
    shared: &Shared,
    user: &str,
    peer: SocketAddr,
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    permit: OwnedSemaphorePermit,
) {
    let managed = &shared.managed;
    let id = shared.next.fetch_add(1, Ordering::Relaxed);
    let limits =
        Limits { message_octets_max: shared.settings.message_octets_max, ..Limits::default() };
    let (session, hello) = Session::new(managed.schema(), user, id, limits);
    let kill = Arc::new(Notify::new());
    shared.kills().insert(id, kill.clone());
    let wake = managed.session_wakes(id);
    managed.session_began(id, user, &peer.ip().to_canonical().to_string());
    let mut running = Running { shared, session, writer: &mut writer, id };
    let ended = running.run(hello, reader, &kill, &wake).await;
    let in_order = matches!(ended, Ended::InOrder);
    if let Ended::Dropped(why) = ended {
        tracing::info!("NETCONF session {id} of {user} at {peer}: {}", printable(&why));
    }
    managed.session_counted(id, running.session.counts());
    managed.session_leaves(id);
    managed.session_ended(id, in_order);
    shared.kills().remove(&id);
    _ = writer.shutdown().await;
    drop(permit);
}

impl Shared {
    fn kills(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Arc<Notify>>> {
        self.kills.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Running<'a, W> {
    shared: &'a Shared,
    session: Session,
    writer: &'a mut W,
    id: u32,
}

impl<W: AsyncWrite + Unpin> Running<'_, W> {
    async fn run(
        &mut self,
        hello: Vec<u8>,
        mut reader: impl AsyncRead + Unpin,
        kill: &Notify,
        wake: &Notify,
    ) -> Ended {
        let settings = &self.shared.settings;
        if let Err(ended) = self.send(&hello).await {
            return ended;
        }
        let mut octets = vec![0; READ_OCTETS];
        let mut subscribed = false;
        loop {
            let patience =
                if self.session.greeted() { settings.idle_max } else { settings.greeting_within };
            tokio::select! {
                read = reader.read(&mut octets) => {
                    let taken = match read {
                        Ok(0) => return Ended::Dropped("it has gone".into()),
                        Ok(taken) => octets.get(..taken).unwrap_or_default(),
                        Err(error) => return Ended::Dropped(error.to_string()),
                    };
                    self.session.take(taken);
                    match self.answer().await {
                        Ok(Then::Continue) => {}
                        Ok(Then::Close) => return Ended::InOrder,
                        Err(ended) => return ended,
                    }
                }
                () = wake.notified() => {
                    subscribed = true;
                    if let Err(ended) = self.notify().await {
                        return ended;
                    }
                }
                () = kill.notified() => {
                    return Ended::Dropped("ended by another session".into());
                }
                () = sleep(patience), if !subscribed || !self.session.greeted() => {
                    let what = if self.session.greeted() { "no request" } else { "no hello" };
                    return Ended::Dropped(format!("{what} in {} s", patience.as_secs()));
                }
            }
        }
    }

    /// Answers every request that has come whole.
    async fn answer(&mut self) -> Result<Then, Ended> {
        loop {
            let request = match self.session.next_request() {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(Then::Continue),
                Err(end) => {
                    if matches!(end, End::Hello(_)) {
                        self.shared.managed.bad_hello();
                    }
                    return Err(Ended::Dropped(end.to_string()));
                }
            };
            let (reply, then) = self.reply(&request);
            self.send(&reply).await?;
            if then == Then::Close {
                return Ok(then);
            }
        }
    }

    fn reply(&mut self, request: &str) -> (Vec<u8>, Then) {
        let Self { shared, session, id, .. } = self;
        let managed = &shared.managed;
        let policy = managed.policy();
        let access = policy.access(&session.caller().user);
        let kill = |other: u32| match shared.kills().get(&other) {
            Some(kill) => {
                kill.notify_one();
                true
            }
            None => false,
        };
        // It can take some milliseconds; others go on meanwhile.
        let answered = tokio::task::block_in_place(|| {
            let world = World {
                datastore: &**managed,
                access: &access,
                operations: &**managed,
                kill: &kill,
            };
            session.answer(request, &world)
        });
        managed.session_counted(*id, session.counts());
        answered
    }

    /// Sends what waits of its subscriptions.
    async fn notify(&mut self) -> Result<(), Ended> {
        while let Some(message) = self.shared.managed.take_for_session(self.id) {
            let octets = self.session.notification_text(&message.time(), &message.content());
            self.send(&octets).await?;
        }
        Ok(())
    }

    async fn send(&mut self, octets: &[u8]) -> Result<(), Ended> {
        let within = self.shared.settings.taken_within;
        let sent = timeout(within, async {
            self.writer.write_all(octets).await?;
            self.writer.flush().await
        });
        let sent: Result<io::Result<()>, _> = sent.await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Ended::Dropped(error.to_string())),
            Err(_) => Err(Ended::Dropped("what was sent was not taken in time".into())),
        }
    }
}
