//! Addresses, certificates and keys of what is served: all that can fail is done before an agent
//! gives up its privileges.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use manage::push;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::https::{self, Https};
use super::{Managed, ssh};
use crate::agent::size;
use crate::config::{Device, Manage, NamedFile, Netconf, Proof};
use crate::queue::board::Board;
use crate::serve::access;

/// Octets of a file of public keys, at most.
const KEYS_OCTETS_MAX: u64 = 1 << 20;

/// Addresses that are taken, with what is shown at them.
pub struct Opened {
    manage: Manage,
    https: Option<Https>,
    ssh: Option<(TcpListener, ssh::Settings)>,
}

/// Reads the files and takes the addresses, while it is allowed.
///
/// # Errors
/// A file that cannot be used, or an address that cannot be listened on; in a line.
// QUE-sec.1
pub fn open(device: &Device) -> Result<Option<Opened>, String> {
    let Some(manage) = &device.manage else { return Ok(None) };
    let https = match &manage.restconf {
        Some(restconf) => {
            let (tls, verifier) = access::tls(&restconf.tls)?;
            let (listener, address) = listen("manage.restconf.listen", restconf.listen)?;
            Some(Https { listener, address, tls: Arc::new(tls), verifier })
        }
        None => None,
    };
    let ssh = match &manage.netconf {
        Some(netconf) => {
            let settings = settings(manage, netconf)
                .map_err(|(file, problem)| format!("{}: {file}: {problem}", file.key))?;
            Some((listen("manage.netconf.listen", netconf.listen)?.0, settings))
        }
        None => None,
    };
    Ok(Some(Opened { manage: manage.clone(), https, ssh }))
}

/// What [`open`] would say of the files, without taking an address: the key, its line, and what is
/// wrong.
pub fn refusals(device: &Device) -> Vec<(String, Option<usize>, String)> {
    let mut all = Vec::new();
    let Some(manage) = &device.manage else { return all };
    if let Some(restconf) = &manage.restconf
        && let Err(problem) = access::tls(&restconf.tls)
    {
        all.push(("manage.restconf".into(), Some(restconf.tls.certificate.line), problem));
    }
    if let Some(netconf) = &manage.netconf
        && let Err((file, problem)) = settings(manage, netconf)
    {
        all.push((file.key.clone(), Some(file.line), format!("{file}: {problem}")));
    }
    all
}

fn listen(key: &str, at: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let failed = |error| format!("{key}: {at}: {error}");
    let listener = TcpListener::bind(at).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn settings<'a>(
    manage: &'a Manage,
    netconf: &'a Netconf,
) -> Result<ssh::Settings, (&'a NamedFile, String)> {
    let limits = manage.limits;
    let users = manage.logins.iter().filter_map(|login| match &login.proof {
        Proof::SshKeys(file) => Some((login.user.clone(), file)),
        Proof::Https(_) => None,
    });
    let users = users
        .map(|(user, file)| Ok((user, public_keys(file).map_err(|problem| (file, problem))?)))
        .collect::<Result<_, _>>()?;
    let host_key =
        ssh::host_key(&netconf.host_key.path).map_err(|problem| (&netconf.host_key, problem))?;
    Ok(ssh::Settings {
        host_key,
        users,
        connections_max: size(limits.netconf_connections_max),
        sessions_max: size(limits.netconf_sessions_max),
        message_octets_max: size(limits.netconf_message_octets_max),
        greeting_within: Duration::from_secs(limits.request_timeout_s),
        taken_within: Duration::from_secs(limits.answer_timeout_s),
        idle_max: Duration::from_secs(limits.netconf_idle_timeout_s),
    })
}

fn public_keys(file: &NamedFile) -> Result<Vec<russh::keys::ssh_key::PublicKey>, String> {
    let octets = fs::metadata(&file.path).map_err(|error| error.to_string())?.len();
    if octets > KEYS_OCTETS_MAX {
        return Err(format!("{octets} octets, expected at most {KEYS_OCTETS_MAX}"));
    }
    ssh::public_keys(&fs::read_to_string(&file.path).map_err(|error| error.to_string())?)
}

impl Opened {
    /// Serves what a board has until it is told to stop.
    ///
    /// # Errors
    /// The modules do not load, or the system gives no listener; in a line.
    pub fn serve(
        self,
        runtime: &Runtime,
        board: Arc<Board>,
        stop: &watch::Receiver<bool>,
    ) -> Result<(Arc<Managed>, Vec<JoinHandle<()>>), String> {
        let limits = self.manage.limits;
        let settings = push::Settings {
            subscriptions_max: size(limits.subscriptions_max),
            of_user_max: size(limits.subscriptions_per_user_max),
            waiting_octets_max: size(limits.subscription_octets_max),
            all_octets_max: size(limits.subscriptions_octets_max),
            filters_of_user_max: size(limits.filters_per_user_max),
            period_min: u32::try_from(limits.period_min_cs).unwrap_or(u32::MAX),
            suspended_max: Duration::from_secs(limits.unread_timeout_s),
        };
        let base = self.https.as_ref().map_or_else(String::new, |https| https.base());
        let answers_max = size(limits.answers_max);
        let managed = Managed::new(board, self.manage.policy.clone(), base, settings, answers_max)?;
        let mut serving = Vec::new();
        let (followed, mut end) = (managed.clone(), stop.clone());
        serving.push(runtime.spawn(async move {
            tokio::select! {
                () = followed.follow() => {}
                _ = end.wait_for(|stop| *stop) => {}
            }
        }));
        if let Some(https) = self.https {
            let served = https::serve(https, self.manage, managed.clone(), stop.clone());
            serving.push(runtime.spawn(served));
        }
        if let Some((listener, settings)) = self.ssh {
            let _inside = runtime.enter();
            let listener = tokio::net::TcpListener::from_std(listener)
                .map_err(|error| format!("manage.netconf.listen: {error}"))?;
            let address = listener.local_addr();
            let address = address.map_err(|error| format!("manage.netconf.listen: {error}"))?;
            tracing::info!("serves NETCONF over SSH on {address}");
            let served = ssh::serve(listener, managed.clone(), settings, stop.clone());
            serving.push(runtime.spawn(served));
        }
        Ok((managed, serving))
    }
}
