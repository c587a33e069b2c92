//! What the protocols have in common: how a user reads, and how an operation is called.
//!
//! Every way in reads through [`View`]: the nodes that the request is for, then what the user may
//! read of them, and only then what a filter selects.
// QUE-sec.1

use serde_json::Value;

use crate::access::Access;
use crate::error::{OperationError, Tag};
use crate::operational::Datastore;
use crate::read::Encoding;
use crate::schema::{Definition, Schema};
use crate::select::{Defaults, Which, which};
use crate::tree::Node;
use crate::xml::Element;

/// The datastores that are served (RFC 8342).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// What is so.
    Operational,
    /// What was configured, by a file: nothing changes it here.
    Running,
}

impl Store {
    /// The datastore of an identity, `ietf-datastores:operational` for one.
    pub fn read(identity: &str) -> Option<Self> {
        match identity {
            "ietf-datastores:operational" => Some(Self::Operational),
            "ietf-datastores:running" => Some(Self::Running),
            _ => None,
        }
    }

    /// The mode in which values that are defaults are shown. In the operational datastore there are
    /// values in use and no others, so that of every mode but `trim` is the same (RFC 8526, section 3.1.1.2;
    /// RFC 8527, section 3.2.1): a default in a module is no observation.
    pub const fn shown(self, mode: Defaults) -> Defaults {
        match (self, mode) {
            (Self::Operational, Defaults::All) => Defaults::Explicit,
            (_, mode) => mode,
        }
    }
}

/// What one user sees.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The modules.
    pub schema: &'static Schema,
    /// What there is.
    pub datastore: &'a dyn Datastore,
    /// What of it the user may read.
    pub access: &'a Access<'a>,
}

impl View<'_> {
    /// The top-level nodes that are wanted, as far as the user may read them.
    pub fn top(&self, store: Store, wanted: impl Fn(&Definition) -> bool) -> Vec<Node> {
        self.top_of(store, wanted).0
    }

    /// The same, and whether that is all of them that there is.
    pub fn top_of(&self, store: Store, wanted: impl Fn(&Definition) -> bool) -> (Vec<Node>, bool) {
        let found = self
            .schema
            .data()
            .iter()
            .filter(|definition| wanted(definition))
            .filter_map(|definition| match store {
                Store::Operational => self.datastore.top(definition),
                Store::Running => self.datastore.running(definition),
            })
            .collect();
        let found = match store {
            Store::Operational => found,
            Store::Running => which(found, Which::Config),
        };
        self.access.readable_of(found)
    }
}

/// The way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A session of NETCONF, by its number.
    Netconf(u32),
    /// RESTCONF.
    Restconf,
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub user: Box<str>,
    /// The way in.
    pub transport: Transport,
}

/// An operation as it was sent, for what libyang does not keep of it: the content of filters.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// The element of the operation, last, and those around it, the outermost first.
    Xml(&'a [&'a Element]),
    /// The object that is the input.
    Json(&'a Value),
    /// There was none.
    Nothing,
}

/// A call of an operation that the caller may call, checked against the modules.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Who calls.
    pub caller: &'a Caller,
    /// What the caller may read.
    pub access: &'a Access<'a>,
    /// The operation with its input.
    pub input: &'a Node,
    /// As it was sent.
    pub body: Body<'a>,
    /// How.
    pub encoding: Encoding,
    /// Where the caller reaches this server over HTTP, `https://host:port`; empty in NETCONF.
    pub base: &'a str,
}

/// Operations that belong to no protocol: those of subscriptions.
pub trait Operations {
    /// Whether it is one of these.
    fn has(&self, operation: &Definition) -> bool;

    /// Carries one out and gives its output.
    ///
    /// # Errors
    ///
    /// The operation is refused, and nothing has changed.
    fn call(&self, call: &Call<'_>) -> Result<Vec<Node>, OperationError>;
}

/// No operation at all.
#[derive(Clone, Copy, Debug)]
pub struct NoOperations;

impl Operations for NoOperations {
    fn has(&self, _: &Definition) -> bool {
        false
    }

    fn call(&self, call: &Call<'_>) -> Result<Vec<Node>, OperationError> {
        let found = format!("operation {}, which this server does not have", call.input.definition);
        Err(OperationError::protocol(Tag::OperationNotSupported, found))
    }
}
