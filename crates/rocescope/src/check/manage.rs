//! What `[manage]` of a device's configuration would do: who is served what.

use std::fmt;

use manage::access::{Action, Rule, RuleList, Subject};
use manage::schema::Schema;

use super::write_tls;
use crate::config::{Login, Manage, Netconf, Proof, Restconf, printable};

/// Where queue telemetry is served, and to whom.
// QUE-sec.1
pub(super) fn write_manage(f: &mut fmt::Formatter<'_>, manage: &Manage) -> fmt::Result {
    if let Some(Restconf { listen, tls }) = &manage.restconf {
        writeln!(f, "RESTCONF    https://{listen}/restconf: what queues did, to be read")?;
        write_tls(f, tls)?;
    }
    if let Some(Netconf { listen, host_key }) = &manage.netconf {
        writeln!(f, "NETCONF     over SSH on {listen}, with host key {host_key}")?;
    }
    if manage.restconf.is_none() && manage.netconf.is_none() {
        writeln!(
            f,
            "  warning: no [manage.restconf] and no [manage.netconf], so nothing is served"
        )?;
    }
    for Login { user, proof } in &manage.logins {
        write!(f, "  {} is who has ", printable(user))?;
        match proof {
            Proof::Https(identity) => writeln!(f, "{identity}")?,
            Proof::SshKeys(file) => writeln!(f, "a key of {file}")?,
        }
    }
    let policy = &manage.policy;
    for list in &policy.lists {
        let groups: Vec<String> =
            list.groups.iter().map(|group| printable(group).to_string()).collect();
        writeln!(f, "  rules {} for {}", printable(&list.name), groups.join(" "))?;
        for rule in &list.rules {
            let what = match (&rule.subject, rule.read, rule.exec) {
                (Subject::Data(_) | Subject::Notification(_), ..) => "reading",
                (Subject::Rpc(_), ..) => "calling",
                (Subject::All, true, true) => "reading and calling",
                (Subject::All, true, false) => "reading",
                (Subject::All, false, _) => "calling",
            };
            let module = rule.module.as_deref().unwrap_or("every module");
            write!(f, "    {} {what} of {}", rule.action.word(), printable(module))?;
            match &rule.subject {
                Subject::All => writeln!(f)?,
                Subject::Data(path) => writeln!(f, ", {}", printable(&path.to_string()))?,
                Subject::Rpc(name) => {
                    let name = name.as_deref().unwrap_or("*");
                    writeln!(f, ", operation {}", printable(name))?;
                }
                Subject::Notification(name) => {
                    let name = name.as_deref().unwrap_or("*");
                    writeln!(f, ", notification {}", printable(name))?;
                }
            }
            write_reach(f, manage, list, rule)?;
        }
    }
    for Login { user, .. } in &manage.logins {
        let is = |list: &&RuleList| policy.is_for(list, user);
        let permits = |list: &RuleList| list.rules.iter().any(|r| r.action == Action::Permit);
        let defaults = [policy.read_default, policy.exec_default].contains(&Action::Permit);
        if !defaults && !policy.lists.iter().filter(is).any(permits) {
            writeln!(f, "  warning: no rule permits {} anything", printable(user))?;
        }
    }
    let (read, exec) = (policy.read_default.word(), policy.exec_default.word());
    writeln!(f, "  where no rule decides: {read} reading, {exec} calling")
}

/// What a rule does that its words do not show: it reaches further, or not at all.
// QUE-sec.1
fn write_reach(
    f: &mut fmt::Formatter<'_>,
    manage: &Manage,
    list: &RuleList,
    rule: &Rule,
) -> fmt::Result {
    let Ok(schema) = Schema::get() else { return Ok(()) };
    let everything = rule.module.is_none() && rule.subject == Subject::All;
    if rule.action == Action::Permit && rule.read && everything {
        writeln!(
            f,
            "      with all users, groups and rules, and the sessions and subscriptions of others"
        )?;
    }
    for name in rule.ends_others(schema) {
        let whose = name.strip_prefix("kill-").unwrap_or(name);
        writeln!(f, "      with {name}, which ends a {whose} of whomever")?;
    }
    let users = manage.users();
    let idle = manage.policy.idle(schema, list, rule, users.iter().copied());
    let of_list = users.iter().filter(|user| manage.policy.is_for(list, user)).count();
    if let Some((_, first)) = idle.first() {
        let alike: Vec<String> = idle
            .iter()
            .filter(|(_, why)| why == first)
            .map(|(user, _)| printable(user).to_string())
            .collect();
        let whom = if alike.len() == of_list { "all of them".into() } else { alike.join(", ") };
        writeln!(f, "      warning: for {whom} it {}", printable(&first.to_string()))?;
    }
    Ok(())
}
