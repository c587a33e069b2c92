//! NETCONF over SSH (RFC 6242): the subsystem `netconf`, users by public key, and nothing else.
//!
//! There is no shell, no forwarding and no password. What a session says is decided by
//! [`manage::netconf`]; here are connections, deadlines and what waits for a reader: a session whose
//! client does not read gets no further request read, and ends when its time is over.
// QUE-pub.2, QUE-sec.1

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use manage::netconf::{End, Limits, Session, Then, World};
use russh::keys::Algorithm;
use russh::keys::ssh_key::{HashAlg, PublicKey};
use russh::keys::{PrivateKey, load_secret_key};
use russh::server::{
    Auth, ChannelOpenHandle, Config, Handler, Msg, PublicKeyOffer, VerifiedPublicKey, run_stream,
};
use russh::{Channel, ChannelId, Disconnect, MethodKind, MethodSet, Pty, server};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Managed, Waiting, Way};
use crate::collector::admission::{Handshake, Handshakes};
use crate::config::printable;
use crate::serve::paced::Paced;

/// Sessions of one connection, at most.
const OF_CONNECTION_MAX: usize = 4;

/// How long the listener rests when the system gives no connection.
const REST: Duration = Duration::from_millis(100);

/// How long a client may take to leave when it is told to.
const LEAVING: Duration = Duration::from_secs(1);

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
    /// Places of connections whose user is not known yet, which can be taken away.
    strangers: Arc<Handshakes>,
    /// Places of the others, which cannot.
    known: Arc<Semaphore>,
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
        strangers: Handshakes::new(settings.connections_max),
        known: Arc::new(Semaphore::new(settings.connections_max)),
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
        let (shared, stop) = (shared.clone(), stop.clone());
        shared.managed.counts.connected(Way::Netconf);
        tokio::spawn(async move {
            let login = Arc::new(Mutex::new(Login::Nothing));
            let problem = connection(shared.clone(), stream, peer, stop, &login).await.err();
            let login = std::mem::take(&mut *login.lock().unwrap_or_else(PoisonError::into_inner));
            match (login, problem) {
                (Login::Refused(why), _) => shared.managed.refused(Way::Netconf, peer, &why),
                // What became of its sessions they have said.
                (Login::Known, Some(problem)) => {
                    tracing::debug!("{peer}: {}", printable(&problem));
                }
                (Login::Nothing, Some(problem)) => {
                    tracing::info!("NETCONF: {peer}: no login: {}", printable(&problem));
                }
                (_, None) => {}
            }
        });
    }
}

/// Closes a connection, whatever is still at work on it: SSH by itself would wait for the client.
struct Closing(std::net::TcpStream);

impl Drop for Closing {
    fn drop(&mut self) {
        _ = self.0.shutdown(Shutdown::Both);
    }
}

/// The place of a connection.
enum Place {
    Stranger(#[expect(dead_code, reason = "given back when dropped")] Handshake),
    Known(#[expect(dead_code, reason = "given back when dropped")] OwnedSemaphorePermit),
}

impl Place {
    const fn known(&self) -> bool {
        matches!(self, Self::Known(_))
    }
}

async fn connection(
    shared: Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    mut stop: watch::Receiver<bool>,
    login: &Arc<Mutex<Login>>,
) -> Result<(), String> {
    let (place, evicted) = shared.strangers.enter(peer.ip());
    let place = Arc::new(Mutex::new(Place::Stranger(place)));
    let twice = |error: io::Error| format!("the connection cannot be held: {error}");
    let stream = stream.into_std().map_err(twice)?;
    let closing = Closing(stream.try_clone().map_err(twice)?);
    let stream = TcpStream::from_std(stream).map_err(twice)?;
    _ = stream.set_nodelay(true);
    let running = Arc::new(AtomicU32::new(0));
    let client = Client {
        shared: shared.clone(),
        peer,
        user: None,
        place: place.clone(),
        login: login.clone(),
        channels: HashMap::new(),
        running: running.clone(),
    };
    let within = shared.settings.greeting_within;
    let is_known = || place.lock().unwrap_or_else(PoisonError::into_inner).known();
    let by = Instant::now() + within;
    // What is not taken in time ends the connection, whatever waits above it.
    let stream = Paced::new(stream, shared.settings.taken_within);
    let greeted = timeout(within, run_stream(shared.ssh.clone(), stream, client)).await;
    let mut ssh = greeted
        .map_err(|_| "no SSH in time".to_owned())?
        .map_err(|error| format!("SSH: {error}"))?;
    let handle = ssh.handle();
    let idle_max = shared.settings.idle_max;
    let useless = async {
        sleep_until(by).await;
        if !is_known() {
            return "no user in time";
        }
        // A user without a session is of no use either.
        let mut without = Instant::now();
        loop {
            sleep_until(without + idle_max).await;
            if running.load(Ordering::Relaxed) == 0 {
                return "no session";
            }
            without = Instant::now();
        }
    };
    let evicted = async {
        // Where the place was given back, it is known.
        if evicted.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let words = tokio::select! {
        ended = &mut ssh => return ended.map_err(|error| format!("SSH: {error}")),
        words = useless => words,
        () = evicted => return Err("its place is taken by another that is not known".into()),
        _ = stop.wait_for(|stop| *stop) => "the agent stops",
    };
    let leaving = async {
        _ = handle.disconnect(Disconnect::ByApplication, words.into(), String::new()).await;
        _ = ssh.await;
    };
    _ = timeout(LEAVING, leaving).await;
    drop(closing);
    Ok(())
}

/// What a client has shown of who it is.
#[derive(Default)]
enum Login {
    /// Nothing so far.
    #[default]
    Nothing,
    /// Keys that nobody has, the last of them. It may have others.
    Refused(String),
    /// A key that a user has.
    Known,
}

/// One SSH connection.
struct Client {
    shared: Arc<Shared>,
    peer: SocketAddr,
    user: Option<String>,
    place: Arc<Mutex<Place>>,
    login: Arc<Mutex<Login>>,
    channels: HashMap<ChannelId, Channel<Msg>>,
    /// Sessions that are at work.
    running: Arc<AtomicU32>,
}

impl Client {
    fn may(&self, user: &str, key: &PublicKey, algorithm: &Algorithm) -> Auth {
        // A signature over SHA-1 (RFC 8332).
        if matches!(algorithm, Algorithm::Rsa { hash: None }) {
            return Auth::reject();
        }
        let users = &self.shared.settings.users;
        let known = users.iter().any(|(name, keys)| {
            name == user && keys.iter().any(|known| known.key_data() == key.key_data())
        });
        if known {
            return Auth::Accept;
        }
        let fingerprint = key.fingerprint(HashAlg::Sha256);
        let user = printable(user);
        let why = match users.iter().any(|(name, _)| *name == *user.to_string()) {
            true => format!("key {fingerprint}, which is none of {user}'s"),
            false => format!("user {user}, whom no [[manage.login]] with ssh_keys has"),
        };
        let mut login = self.login.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*login, Login::Known) {
            *login = Login::Refused(why);
        }
        Auth::reject()
    }
}

impl Handler for Client {
    type Error = russh::Error;

    async fn auth_publickey_offered(
        &mut self,
        user: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        Ok(self.may(user, offer.public_key, offer.algorithm))
    }

    async fn auth_publickey(
        &mut self,
        user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        let may = self.may(user, key.public_key, key.algorithm);
        if may == Auth::Accept {
            let Ok(permit) = self.shared.known.clone().try_acquire_owned() else {
                tracing::warn!("{}: as many connections for NETCONF as there may be", self.peer);
                return Ok(Auth::reject());
            };
            *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Place::Known(permit);
            *self.login.lock().unwrap_or_else(PoisonError::into_inner) = Login::Known;
            self.user = Some(user.to_owned());
        }
        Ok(may)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut server::Session,
    ) -> Result<(), Self::Error> {
        let running = usize::try_from(self.running.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        if self.channels.len().saturating_add(running) < OF_CONNECTION_MAX {
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
        let Ok(permit) = self.shared.sessions.clone().try_acquire_owned() else {
            tracing::warn!("{}: as many sessions of NETCONF as there may be", self.peer);
            return refused(ssh);
        };
        let Some(channel) = self.channels.remove(&id) else { return refused(ssh) };
        ssh.channel_success(id)?;
        let (shared, peer) = (self.shared.clone(), self.peer);
        let running = self.running.clone();
        running.fetch_add(1, Ordering::Relaxed);
        let handle = ssh.handle();
        tokio::spawn(async move {
            let (reader, mut writer) = tokio::io::split(channel.into_stream());
            let in_order = session(&shared, &user, peer, reader, &mut writer, permit).await;
            if in_order {
                // Without it a client's program takes the end for a failure (RFC 4254, section 6.10).
                _ = handle.exit_status_request(id, 0).await;
            }
            _ = writer.shutdown().await;
            running.fetch_sub(1, Ordering::Relaxed);
        });
        Ok(())
    }

    async fn shell_request(
        &mut self,
        id: ChannelId,
        ssh: &mut server::Session,
    ) -> Result<(), Self::Error> {
        ssh.channel_failure(id)
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        _: &[u8],
        ssh: &mut server::Session,
    ) -> Result<(), Self::Error> {
        ssh.channel_failure(id)
    }

    async fn pty_request(
        &mut self,
        id: ChannelId,
        _: &str,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: &[(Pty, u32)],
        ssh: &mut server::Session,
    ) -> Result<(), Self::Error> {
        ssh.channel_failure(id)
    }
}

/// Why a session is at its end.
enum Ended {
    /// The client said so.
    InOrder,
    /// For another reason.
    Dropped(String),
}

/// One session of NETCONF, from hello to its end. Whether that came in order.
async fn session(
    shared: &Shared,
    user: &str,
    peer: SocketAddr,
    reader: impl AsyncRead + Unpin,
    writer: &mut (impl AsyncWrite + Unpin),
    permit: OwnedSemaphorePermit,
) -> bool {
    let managed = &shared.managed;
    let id = shared.next.fetch_add(1, Ordering::Relaxed);
    let limits =
        Limits { message_octets_max: shared.settings.message_octets_max, ..Limits::default() };
    let (session, hello) = Session::new(managed.schema(), user, id, limits);
    let kill = Arc::new(Notify::new());
    shared.kills().insert(id, kill.clone());
    let wake = managed.session_wakes(id).await;
    managed.session_began(id, user, &peer.ip().to_canonical().to_string());
    let mut running = Running {
        shared,
        session,
        reader,
        writer,
        id,
        ahead: Vec::new(),
        gone: false,
        subscribed: false,
        since: Instant::now(),
    };
    let ended = tokio::select! {
        ended = running.run(hello, &wake) => ended,
        () = kill.notified() => Ended::Dropped("ended by another session".into()),
    };
    let in_order = matches!(ended, Ended::InOrder);
    if let Ended::Dropped(why) = ended {
        tracing::info!("NETCONF session {id} of {user} at {peer}: {}", printable(&why));
    }
    managed.session_counted(id, running.session.counts());
    managed.session_leaves(id).await;
    managed.session_ended(id, in_order);
    shared.kills().remove(&id);
    drop(permit);
    in_order
}

impl Shared {
    fn kills(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Arc<Notify>>> {
        self.kills.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Running<'a, R, W> {
    shared: &'a Shared,
    session: Session,
    reader: R,
    writer: &'a mut W,
    id: u32,
    /// What came while something was sent. It is read, as far as there is room, since SSH has one
    /// line for all: what is not read would keep back that the client has taken something.
    ahead: Vec<u8>,
    /// Nothing more comes.
    gone: bool,
    /// It has a subscription, and may be silent.
    subscribed: bool,
    /// When it last asked for something, or had its last subscription.
    since: Instant,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Running<'_, R, W> {
    async fn run(&mut self, hello: Vec<u8>, wake: &Notify) -> Ended {
        let settings = &self.shared.settings;
        if let Err(ended) = self.send(&hello).await {
            return ended;
        }
        let mut octets = vec![0; READ_OCTETS];
        loop {
            while !self.ahead.is_empty() {
                let ahead = std::mem::take(&mut self.ahead);
                match self.answer(&ahead, wake).await {
                    Ok(Then::Continue) => {}
                    Ok(Then::Close) => return Ended::InOrder,
                    Err(ended) => return ended,
                }
            }
            if self.gone {
                return Ended::Dropped("it has gone".into());
            }
            let patience =
                if self.session.greeted() { settings.idle_max } else { settings.greeting_within };
            tokio::select! {
                read = self.reader.read(&mut octets) => match read {
                    Ok(0) => self.gone = true,
                    Ok(taken) => {
                        self.ahead.extend_from_slice(octets.get(..taken).unwrap_or_default());
                    }
                    Err(error) => return Ended::Dropped(error.to_string()),
                },
                () = wake.notified() => {
                    if let Err(ended) = self.notify().await {
                        return ended;
                    }
                }
                () = sleep_until(self.since + patience), if !self.subscribed => {
                    let what = if self.session.greeted() { "no request" } else { "no hello" };
                    return Ended::Dropped(format!("{what} in {} s", patience.as_secs()));
                }
            }
        }
    }

    /// Answers every request that has come whole.
    async fn answer(&mut self, octets: &[u8], wake: &Notify) -> Result<Then, Ended> {
        self.session.take(octets);
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
            let (reply, then) = self.reply(&request).await?;
            self.send(&reply).await?;
            self.since = Instant::now();
            if then == Then::Close {
                return Ok(then);
            }
            // However many requests there are, notifications do not wait for all of them.
            let woken = tokio::select! {
                biased;
                () = wake.notified() => true,
                () = std::future::ready(()) => false,
            };
            if woken {
                self.notify().await?;
            }
        }
    }

    async fn reply(&mut self, request: &str) -> Result<(Vec<u8>, Then), Ended> {
        let Self { shared, session, id, .. } = self;
        let managed = &shared.managed;
        let Some(_permit) = managed.answers().await else {
            return Err(Ended::Dropped("nothing is answered any more".into()));
        };
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
        Ok(answered)
    }

    /// Sends what waits of its subscriptions.
    async fn notify(&mut self) -> Result<(), Ended> {
        loop {
            let message = match self.shared.managed.take_for_session(self.id).await {
                Waiting::Message(message) => message,
                Waiting::Nothing => {
                    self.subscribed = true;
                    return Ok(());
                }
                Waiting::NoSubscription => {
                    if std::mem::take(&mut self.subscribed) {
                        self.since = Instant::now();
                    }
                    return Ok(());
                }
            };
            self.subscribed = true;
            let octets = self.session.notification_text(&message.time(), &message.content());
            self.send(&octets).await?;
            self.shared.managed.counts.sent(Way::Netconf);
        }
    }

    async fn send(&mut self, octets: &[u8]) -> Result<(), Ended> {
        let Self { shared, reader, writer, ahead, gone, .. } = self;
        let ahead_max = shared.settings.message_octets_max;
        let sending = async {
            writer.write_all(octets).await?;
            writer.flush().await
        };
        let mut sending = std::pin::pin!(timeout(shared.settings.taken_within, sending));
        let mut more = vec![0; READ_OCTETS];
        loop {
            tokio::select! {
                biased;
                sent = &mut sending => return match sent {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(error)) => Err(Ended::Dropped(error.to_string())),
                    Err(_) => Err(Ended::Dropped("what was sent was not taken in time".into())),
                },
                read = reader.read(&mut more), if !*gone && ahead.len() < ahead_max => match read {
                    Ok(0) | Err(_) => *gone = true,
                    Ok(taken) => ahead.extend_from_slice(more.get(..taken).unwrap_or_default()),
                },
            }
        }
    }
}
