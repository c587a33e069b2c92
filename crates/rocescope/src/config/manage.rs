//! `[manage]` of a device: who may read its queue telemetry, what of it, and where it is served.
//!
//! Nothing is served without TLS, also not on loopback, and nothing to anybody who is not listed. A
//! user whom no rule permits something reads and calls nothing. A name that exists nowhere is refused:
//! a rule with it would never be about anything, and what it denies would be permitted.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

use manage::access::{Action, Group, Pattern, Policy, Rule, RuleList, Subject};
use manage::schema::{Definition, Schema};

use super::device::named;
use super::http::{self, HttpTls, ReaderIdentity};
use super::limits::MANAGE_KEYS;
use super::section::{Section, Value, nearest};
use super::{ManageLimits, NamedFile, pfc};

const RESTCONF_KEYS: &[&str] = &["listen", "certificate", "key", "authority", "revocation"];
const NETCONF_KEYS: &[&str] = &["listen", "host_key"];
const LOGIN_KEYS: &[&str] = &["user", "name", "fingerprint", "token_sha256", "ssh_keys"];
const GROUP_KEYS: &[&str] = &["name", "users"];
const LIST_KEYS: &[&str] = &["name", "groups", "rule"];
const RULE_KEYS: &[&str] =
    &["name", "module", "path", "operation", "notification", "access", "action"];

const ACTIONS: [(&str, Action); 2] = [("permit", Action::Permit), ("deny", Action::Deny)];
const DEFAULTS: [(&str, Action); 2] = [("deny", Action::Deny), ("permit", Action::Permit)];
/// Reading, calling.
const ACCESS: [(&str, (bool, bool)); 3] =
    [("all", (true, true)), ("read", (true, false)), ("exec", (false, true))];

/// `[manage]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manage {
    /// How users are known, in the order in which that is looked at.
    pub logins: Vec<Login>,
    /// Who may do what.
    pub policy: Policy,
    /// Where it is served over HTTPS.
    pub restconf: Option<Restconf>,
    /// Where it is served over SSH.
    pub netconf: Option<Netconf>,
    /// Bounds.
    pub limits: ManageLimits,
}

/// `[[manage.login]]`.
// QUE-sec.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Who it is.
    pub user: String,
    /// How that is known.
    pub proof: Proof,
}

/// How a user is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Over HTTPS.
    Https(ReaderIdentity),
    /// Over SSH: a file of public keys, as OpenSSH writes them.
    SshKeys(NamedFile),
}

/// `[manage.restconf]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restconf {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What it shows itself with, and whom it trusts.
    pub tls: HttpTls,
}

/// `[manage.netconf]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Netconf {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The private key that it shows itself with.
    pub host_key: NamedFile,
}

impl Manage {
    /// Who can be known, each once.
    pub fn users(&self) -> BTreeSet<&str> {
        self.logins.iter().map(|login| &*login.user).collect()
    }

    /// The files that it names.
    pub fn files(&self) -> impl Iterator<Item = &NamedFile> {
        let tls = self.restconf.iter().flat_map(|restconf| restconf.tls.files());
        let keys = self.logins.iter().filter_map(|login| match &login.proof {
            Proof::SshKeys(file) => Some(file),
            Proof::Https(_) => None,
        });
        tls.chain(self.netconf.iter().map(|netconf| &netconf.host_key)).chain(keys)
    }
}

/// Reads `[manage]`; none where the file has none.
#[expect(clippy::option_option, reason = "wrong, absent, there")]
pub(super) fn read(top: &Section<'_>, directory: &Path) -> Option<Option<Manage>> {
    let section = top.section("manage", MANAGE_KEYS);
    let limits = ManageLimits::read(&section);
    let read_default = section.choice("read_default", &DEFAULTS);
    let exec_default = section.choice("exec_default", &DEFAULTS);
    let logins = all(&section.sections("login", LOGIN_KEYS), |section| login(section, directory));
    let (groups_in, lists_in) =
        (section.sections("group", GROUP_KEYS), section.sections("rules", LIST_KEYS));
    let groups = all(&groups_in, group);
    let lists = all(&lists_in, list);
    let restconf = restconf(&section, directory);
    let netconf = netconf(&section, directory);
    let (logins, groups, lists) = (logins?, groups?, lists?);
    once(&section, "group", groups.iter().map(|group| &*group.name))?;
    once(&section, "rules", lists.iter().map(|list| &*list.name))?;
    let users: Vec<&str> = logins.iter().map(|login| &*login.user).collect();
    let in_groups = members(&groups_in, "users", &users, &[], "[[manage.login]]");
    let named: Vec<&str> = groups.iter().map(|group| &*group.name).collect();
    let in_lists = members(&lists_in, "groups", &named, &["*"], "[[manage.group]]");
    in_groups.and(in_lists)?;
    let policy = Policy { groups, lists, read_default: read_default?, exec_default: exec_default? };
    let (restconf, netconf) = (restconf?, netconf?);
    let manage = Manage { logins, policy, restconf, netconf, limits: limits? };
    reachable(&section, &manage)?;
    Some(section.is_there().then_some(manage))
}

/// Everything of a kind; none where one is wrong, and then every error is told.
fn all<T>(sections: &[Section<'_>], read: impl Fn(&Section<'_>) -> Option<T>) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = sections.iter().map(read).collect();
    read.into_iter().collect()
}

fn once<'a>(
    section: &Section<'_>,
    key: &'static str,
    mut names: impl Iterator<Item = &'a str>,
) -> Option<()> {
    let mut seen = BTreeSet::new();
    let twice = names.find(|name| !seen.insert(*name));
    if let Some(name) = twice {
        section.value(key)?.problem(format!("name {name:?} twice, expected each once"));
        return None;
    }
    Some(())
}

/// Whether every name of these lists is one of those that there are.
// QUE-sec.1
fn members(
    sections: &[Section<'_>],
    key: &'static str,
    there: &[&str],
    also: &[&str],
    of: &str,
) -> Option<()> {
    let mut good = Some(());
    for value in sections.iter().filter_map(|section| section.value(key)) {
        for item in value.list("name")? {
            let name = item.parsed("a name", Some)?;
            if !there.contains(&name) && !also.contains(&name) {
                item.problem(format!("{name:?}, expected the name of a {of}{}", near(name, there)));
                good = None;
            }
        }
    }
    good
}

/// The name that may have been meant.
fn near(name: &str, all: &[&str]) -> String {
    nearest(name, all).map_or_else(String::new, |known| format!(", the nearest is {known:?}"))
}

/// Whether somebody can be known at all, and by what there is.
fn reachable(section: &Section<'_>, manage: &Manage) -> Option<()> {
    let any = |is: fn(&Proof) -> bool| manage.logins.iter().any(|login| is(&login.proof));
    let https = any(|proof| matches!(proof, Proof::Https(_)));
    let ssh = any(|proof| matches!(proof, Proof::SshKeys(_)));
    let missing = |key: &str, problem: &str| {
        section.error(key, format!("missing, expected {problem}"));
        None
    };
    if manage.restconf.is_some() && !https {
        return missing(
            "login",
            "at least one [[manage.login]] with name, fingerprint or token_sha256: nobody else is \
             let in over HTTPS",
        );
    }
    if manage.netconf.is_some() && !ssh {
        return missing(
            "login",
            "at least one [[manage.login]] with ssh_keys: nobody else is let in over SSH",
        );
    }
    if ssh && manage.netconf.is_none() {
        return missing("netconf", "[manage.netconf], the only one to look at ssh_keys");
    }
    if https && manage.restconf.is_none() {
        return missing("restconf", "[manage.restconf], the only one to look at those logins");
    }
    let by_certificate = |proof: &Proof| {
        matches!(proof, Proof::Https(ReaderIdentity::Name(_) | ReaderIdentity::Fingerprint(_)))
    };
    let trusts = manage.restconf.as_ref().is_none_or(|restconf| restconf.tls.authority.is_some());
    if !trusts && any(by_certificate) {
        return missing(
            "restconf.authority",
            "the authority that the certificates of users by name or fingerprint come from",
        );
    }
    Some(())
}

const ADDRESS: &str = "an address and a port, such as \"127.0.0.1:8443\"";

fn listen(section: &Section<'_>) -> Option<SocketAddr> {
    section.required("listen", ADDRESS)?.parsed(ADDRESS, |text| text.parse().ok())
}

#[expect(clippy::option_option, reason = "wrong, absent, there")]
fn restconf(section: &Section<'_>, directory: &Path) -> Option<Option<Restconf>> {
    let section = section.section("restconf", RESTCONF_KEYS);
    if !section.is_there() {
        return Some(None);
    }
    let listen = listen(&section);
    let tls = http::tls(&section, directory)?;
    if tls.is_none() {
        let problem = "missing, expected certificate and key: nothing is served without TLS";
        section.error("certificate", problem.into());
    }
    Some(Some(Restconf { listen: listen?, tls: tls? }))
}

#[expect(clippy::option_option, reason = "wrong, absent, there")]
fn netconf(section: &Section<'_>, directory: &Path) -> Option<Option<Netconf>> {
    let section = section.section("netconf", NETCONF_KEYS);
    if !section.is_there() {
        return Some(None);
    }
    let listen = listen(&section);
    let host_key = section
        .required("host_key", "a file with a private key, as `ssh-keygen -t ed25519` makes one");
    let host_key = host_key.and_then(|value| named(&value, directory));
    Some(Some(Netconf { listen: listen?, host_key: host_key? }))
}

fn name(value: &Value<'_>) -> Option<Box<str>> {
    pfc::name_of(value, "a name of 1 to 64 octets").map(Into::into)
}

fn required_name(section: &Section<'_>, key: &'static str) -> Option<Box<str>> {
    section.required(key, "a name of 1 to 64 octets").and_then(|value| name(&value))
}

fn names(section: &Section<'_>, key: &'static str, what: &str) -> Option<Vec<Box<str>>> {
    let items = section.required(key, format_args!("an array of {what}s"))?.list(what)?;
    let read: Vec<_> = items.iter().map(name).collect();
    read.into_iter().collect()
}

fn login(section: &Section<'_>, directory: &Path) -> Option<Login> {
    let user = required_name(section, "user");
    let others = ["name", "fingerprint", "token_sha256"];
    let proof = match section.value("ssh_keys") {
        None => http::identity(section).map(Proof::Https),
        Some(value) if others.iter().any(|key| section.value(key).is_some()) => {
            value.problem("ssh_keys beside another, expected a [[manage.login]] for each".into());
            None
        }
        Some(value) => named(&value, directory).map(Proof::SshKeys),
    };
    Some(Login { user: user?.into(), proof: proof? })
}

fn group(section: &Section<'_>) -> Option<Group> {
    let name = required_name(section, "name");
    let users = names(section, "users", "user");
    Some(Group { name: name?, users: users? })
}

fn list(section: &Section<'_>) -> Option<RuleList> {
    let name = required_name(section, "name");
    let groups = names(section, "groups", "group");
    let sections = section.sections("rule", RULE_KEYS);
    let rules = all(&sections, rule);
    let rules: Vec<Rule> = (1..)
        .zip(rules?)
        .map(|(number, (name, rule))| {
            let name = name.unwrap_or_else(|| format!("rule-{number}").into());
            Rule { name, ..rule }
        })
        .collect();
    once(section, "rule", rules.iter().map(|rule| &*rule.name))?;
    Some(RuleList { name: name?, groups: groups?, rules })
}

fn rule(section: &Section<'_>) -> Option<(Option<Box<str>>, Rule)> {
    let named = match section.value("name") {
        Some(value) => Some(name(&value)?),
        None => None,
    };
    let module = match section.value("module") {
        Some(value) => Some(name(&value)?).filter(|name| &**name != "*"),
        None => None,
    };
    let subject = subject(section);
    let access = section.choice("access", &ACCESS);
    let action = section.required("action", "\"permit\" or \"deny\"");
    let action = action.and_then(|value| value.choice(&ACTIONS));
    let ((read, exec), subject) = (access?, subject?);
    let rule = Rule { name: "".into(), module, subject, read, exec, action: action? };
    exists(section, &rule)?;
    Some((named, rule))
}

fn subject(section: &Section<'_>) -> Option<Subject> {
    let there: Vec<_> = ["path", "operation", "notification"]
        .into_iter()
        .filter_map(|key| Some((key, section.value(key)?)))
        .collect();
    let (key, value) = match &there[..] {
        [] => return Some(Subject::All),
        [one] => one,
        [_, (key, value), ..] => {
            value.problem(format!(
                "{key} beside another, expected one of path, operation and notification"
            ));
            return None;
        }
    };
    let any = |value: &Value<'_>| name(value).map(|name| Some(name).filter(|name| &**name != "*"));
    match *key {
        "operation" => any(value).map(Subject::Rpc),
        "notification" => any(value).map(Subject::Notification),
        _ => {
            let text = value.parsed("a path of the modules", Some)?;
            let read = Schema::get()
                .map_err(|error| error.to_string())
                .and_then(|schema| Pattern::read(schema, text).map_err(|error| error.to_string()));
            match read {
                Ok(pattern) => Some(Subject::Data(pattern)),
                Err(problem) => {
                    value.problem(problem);
                    None
                }
            }
        }
    }
}

/// Whether there is something that a rule can be about.
// QUE-sec.1
fn exists(section: &Section<'_>, rule: &Rule) -> Option<()> {
    let wrong = |key: &'static str, problem: String| {
        if let Some(value) = section.value(key) {
            value.problem(problem);
        }
        None
    };
    let schema = match Schema::get() {
        Ok(schema) => schema,
        Err(error) => return wrong("action", error.to_string()),
    };
    if let Some(module) = &rule.module {
        let served = schema.modules().iter().filter(|known| known.implemented);
        let all: Vec<&str> = served.map(|known| &*known.name).collect();
        if !all.contains(&&**module) {
            let near = near(module, &all);
            return wrong("module", format!("{module:?}, expected a module that is served{near}"));
        }
    }
    let (key, named, all) = match &rule.subject {
        Subject::All => return Some(()),
        Subject::Data(path) => {
            let module = rule.module.as_deref();
            if module.is_some_and(|module| !path.reaches(module)) {
                return wrong("module", format!("which has nothing at {path} and below"));
            }
            ("path", None, &[][..])
        }
        Subject::Rpc(named) => ("operation", named.as_deref(), schema.rpcs()),
        Subject::Notification(named) => ("notification", named.as_deref(), schema.notifications()),
    };
    let (fits, word, what) = match rule.subject {
        Subject::Rpc(_) => (rule.exec, "exec", "an operation is called"),
        Subject::Data(_) => (rule.read, "read", "data are read: nothing can be written"),
        Subject::All | Subject::Notification(_) => (rule.read, "read", "a notification is read"),
    };
    if !fits {
        return wrong("access", format!("beside {key}, expected \"{word}\" or \"all\": {what}"));
    }
    let in_module = |known: &&Definition| {
        rule.module.as_deref().is_none_or(|module| module == &*known.module.name)
    };
    let names: Vec<&str> = all.iter().filter(in_module).map(|known| &*known.name).collect();
    match named.filter(|named| !names.contains(named)) {
        None => Some(()),
        Some(named) => {
            let of = rule.module.as_deref().unwrap_or("any module that is served");
            wrong(key, format!("{named:?}, expected one of {of}{}", near(named, &names)))
        }
    }
}
