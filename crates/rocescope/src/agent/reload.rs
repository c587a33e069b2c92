//! A new configuration while the agent runs.

use std::collections::BTreeSet;

use manage::access::Policy;

use super::observer::Observer;
use crate::config::{Device, Manage};

impl Observer {
    /// Windows, streams and attestations are taken over; the rest needs a new start.
    // SEQ-4.7
    pub(super) fn reload(&mut self, device: Device) {
        let provisioning = match device.provisioning_with_withdrawn() {
            Ok(provisioning) => provisioning,
            Err(error) => {
                self.seen.reloads_refused += 1;
                return tracing::error!("not reloaded: {error}");
            }
        };
        if let Some(what) = needs_a_start(&self.device, &device) {
            tracing::warn!("[{what}] has changed, which takes a new start; its old values hold");
        }
        if self.disabled.provision(&provisioning) {
            self.keep_state();
        }
        let disabled = std::mem::take(&mut self.disabled);
        self.sessions(|session| session.provision(provisioning.clone(), &disabled));
        self.disabled = disabled;
        self.seen.reloads += 1;
        let (all, withdrawn) = (device.provisioned.len(), device.withdrawn().count());
        let access = device.manage.as_ref().filter(|_| self.managed.is_some());
        let access = access.map_or_else(String::new, |manage| of_access(&manage.policy));
        match withdrawn {
            0 => tracing::info!("reloaded: {all} streams and rules{access}"),
            // SEQ-3.6
            _ => tracing::warn!(
                "reloaded: {all} streams and rules, {withdrawn} of them not attested any more and \
                 not metered{access}"
            ),
        }
        self.device.provisioned = device.provisioned;
        self.provisioning = provisioning;
        // QUE-sec.1
        if let (Some(managed), Some(manage)) = (&self.managed, &device.manage) {
            managed.set_policy(manage.policy.clone());
        }
    }
}

/// What of `[manage]` holds from now on.
fn of_access(policy: &Policy) -> String {
    let users: BTreeSet<&str> =
        policy.groups.iter().flat_map(|group| &group.users).map(|user| &**user).collect();
    let rules: usize = policy.lists.iter().map(|list| list.rules.len()).sum();
    let (lists, groups) = (policy.lists.len(), policy.groups.len());
    format!(
        "; of [manage] {rules} access rules in {lists} lists, {groups} groups with {} users, and \
         the defaults",
        users.len()
    )
}

/// The first section that a reload cannot take over.
fn needs_a_start(old: &Device, new: &Device) -> Option<&'static str> {
    let mut metering = new.metering;
    // The window of entries without one of their own is in the entries.
    metering.window = old.metering.window;
    [
        (old.observation != new.observation, "observation"),
        (old.elements != new.elements, "elements"),
        (old.metering != metering, "meter"),
        (old.sources != new.sources, "source"),
        (old.exports != new.exports, "export"),
        (old.agent != new.agent, "agent"),
        (old.pfc != new.pfc, "pfc"),
        (old.queue != new.queue, "queue"),
        (without_policy(old) != without_policy(new), "manage"),
    ]
    .into_iter()
    .find_map(|(changed, section)| changed.then_some(section))
}

/// What is served, but for who may read it.
fn without_policy(device: &Device) -> Option<Manage> {
    let manage = device.manage.clone()?;
    Some(Manage { policy: Policy::default(), ..manage })
}
