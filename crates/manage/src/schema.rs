//! The YANG modules that this server implements, as libyang has compiled them.
//!
//! [`Schema::get`] loads them once for the life of the process. What all of this crate walks is
//! [`Definition`]: a data node, operation or notification with what the encodings (RFC 7950, section
//! 9, and RFC 7951), access control (RFC 8341) and filters need of it. Choices and cases are no nodes
//! of it, as they are of no instance.
//!
//! libyang itself stays behind this module: [`Schema::read`] checks a document against the modules,
//! and [`crate::select`] has it evaluate XPath.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use yang5::context::{Context, ContextFlags, EmbeddedModuleKey, EmbeddedModules};
use yang5::schema::{DataValueType, SchemaLeafType, SchemaNode, SchemaNodeKind};

/// A module as it is in `yang/`.
struct Source {
    name: &'static str,
    revision: &'static str,
    text: &'static str,
    /// Whether its nodes are served; others are only imported.
    implemented: bool,
    features: &'static [&'static str],
}

macro_rules! module {
    ($name:literal, $revision:literal, $implemented:expr, $features:expr) => {
        Source {
            name: $name,
            revision: $revision,
            text: include_str!(concat!("../../../yang/", $name, "@", $revision, ".yang")),
            implemented: $implemented,
            features: $features,
        }
    };
}

/// Everything that is served or imported, one revision of each.
const SOURCES: &[Source] = &[
    module!("ietf-yang-types", "2025-12-22", false, &[]),
    module!("ietf-inet-types", "2025-12-22", false, &[]),
    module!("ietf-yang-metadata", "2016-08-05", false, &[]),
    module!("ietf-yang-structure-ext", "2020-06-17", false, &[]),
    module!("ietf-yang-schema-mount", "2019-01-14", false, &[]),
    module!("ietf-ip", "2018-02-22", false, &[]),
    module!("ietf-network-instance", "2019-01-21", false, &[]),
    module!("ietf-restconf", "2017-01-26", false, &[]),
    module!("ietf-yang-patch", "2017-02-22", false, &[]),
    module!("iana-if-type", "2026-03-17", true, &[]),
    module!("ietf-interfaces", "2018-02-20", true, &[]),
    module!("ietf-pfc-queue-telemetry", "2026-10-30", true, &[]),
    module!("ietf-datastores", "2018-02-14", true, &[]),
    module!("ietf-origin", "2018-02-14", true, &[]),
    module!("ietf-yang-library", "2019-01-04", true, &[]),
    module!("ietf-netconf-acm", "2018-02-14", true, &[]),
    module!("ietf-netconf", "2011-06-01", true, &["xpath"]),
    module!("ietf-netconf-with-defaults", "2011-06-01", true, &[]),
    module!("ietf-netconf-nmda", "2019-01-07", true, &["with-defaults"]),
    module!("ietf-netconf-monitoring", "2010-10-04", true, &[]),
    module!("ietf-restconf-monitoring", "2017-01-26", true, &[]),
    module!(
        "ietf-subscribed-notifications",
        "2019-09-09",
        true,
        &["encode-json", "encode-xml", "subtree", "xpath"]
    ),
    module!("ietf-restconf-subscribed-notifications", "2019-11-17", true, &[]),
    module!("ietf-yang-push", "2019-09-09", true, &["on-change"]),
    module!("ietf-system-capabilities", "2022-02-17", true, &[]),
    module!("ietf-notification-capabilities", "2022-02-17", true, &[]),
];

/// Operations that nobody may call without a rule that permits it (`nacm:default-deny-all`).
const DENIED_UNLESS_PERMITTED: &[(&str, &str)] = &[
    // Not marked so in the module, which is older; RFC 8341, section 3.2.8, says it of both.
    ("ietf-netconf", "kill-session"),
    ("ietf-netconf", "delete-config"),
    ("ietf-subscribed-notifications", "kill-subscription"),
    ("ietf-netconf-acm", "nacm"),
];

/// A module of the library.
#[derive(Debug)]
pub struct Module {
    /// Its name.
    pub name: Box<str>,
    /// Its revision, `YYYY-MM-DD`; empty for none.
    pub revision: Box<str>,
    /// Its XML namespace.
    pub namespace: Box<str>,
    /// Its prefix.
    pub prefix: Box<str>,
    /// Whether its nodes are served.
    pub implemented: bool,
    /// The features that are supported.
    pub features: &'static [&'static str],
    /// Its text, where this server has it.
    pub text: Option<&'static str>,
}

impl Module {
    /// Whether its text is one of YANG 1: without a version in it, or with 1 (RFC 7950, section
    /// 7.1.2).
    pub fn version_1(&self) -> bool {
        self.text.is_some_and(|text| {
            let mut lines = text.lines();
            let version = lines.find_map(|line| line.trim_start().strip_prefix("yang-version"));
            version.is_none_or(|version| !version.contains("1.1"))
        })
    }
}

/// How a value stands in JSON (RFC 7951, section 6) and what of it XML has to resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A JSON string.
    Text,
    /// A JSON number: integers of up to 32 bits.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `[null]`, and nothing in XML.
    Empty,
    /// A string with module names as prefixes: identities, instance identifiers, XPath.
    Prefixed,
}

/// What kind of node.
#[derive(Debug)]
pub enum Kind {
    /// A container; one with presence says something by being there.
    Container {
        /// It has presence.
        presence: bool,
    },
    /// A list and the names of its keys, in their order; none for a list without keys.
    List {
        /// The keys.
        keys: Box<[Box<str>]>,
    },
    /// A leaf.
    Leaf(Type),
    /// A leaf-list.
    LeafList(Type),
    /// `anydata` or `anyxml`.
    Any,
    /// An operation; its children are its input.
    Rpc {
        /// Its output.
        output: Box<[Definition]>,
    },
    /// A notification.
    Notification,
}

/// A node of the schema.
#[derive(Debug)]
pub struct Definition {
    /// The module whose namespace it is in.
    pub module: &'static Module,
    /// Its name.
    pub name: Box<str>,
    /// What it is.
    pub kind: Kind,
    /// Whether it is configuration.
    pub config: bool,
    /// The value that holds where there is none.
    pub default: Option<Box<str>>,
    /// Nobody has access without a rule that permits it.
    pub default_deny: bool,
    /// What is in it; for an operation its input.
    pub children: Box<[Definition]>,
    /// The choices that it stands in, the outermost first, and its case in each.
    pub cases: Box<[Case]>,
}

/// A case of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The choice.
    pub choice: Box<str>,
    /// The case.
    pub name: Box<str>,
}

impl Definition {
    /// The child of a name, in a module where one is named and in that of this node otherwise.
    pub fn child(&self, module: Option<&str>, name: &str) -> Option<&Self> {
        find(&self.children, module.unwrap_or(&self.module.name), name)
    }

    /// Children of a name in any module.
    pub fn children_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| *child.name == *name)
    }

    /// Whether there can be several of it beside each other.
    pub const fn many(&self) -> bool {
        matches!(self.kind, Kind::List { .. } | Kind::LeafList(_))
    }

    /// Whether it holds one value.
    pub const fn terminal(&self) -> bool {
        matches!(self.kind, Kind::Leaf(_) | Kind::LeafList(_))
    }

    /// The names of its keys; none but for a list.
    pub fn keys(&self) -> &[Box<str>] {
        match &self.kind {
            Kind::List { keys } => keys,
            _ => &[],
        }
    }

    /// Whether it is the same node of the schema.
    pub fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// `module:name`.
impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.module.name, self.name)
    }
}

/// Among these the one of a module and a name.
pub fn find<'a>(nodes: &'a [Definition], module: &str, name: &str) -> Option<&'a Definition> {
    nodes.iter().find(|node| *node.name == *name && *node.module.name == *module)
}

/// The modules could not be loaded: a fault of this program or of how it was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError(String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the YANG modules do not load: {}", self.0)
    }
}

impl std::error::Error for LoadError {}

/// All modules.
#[derive(Debug)]
pub struct Schema {
    pub(crate) context: Context,
    /// By name.
    modules: Vec<&'static Module>,
    /// Top-level data nodes.
    data: &'static [Definition],
    rpcs: &'static [Definition],
    notifications: &'static [Definition],
}

impl Schema {
    /// The modules, loaded at the first call.
    ///
    /// # Errors
    ///
    /// Where libyang does not take them.
    pub fn get() -> Result<&'static Self, LoadError> {
        static SCHEMA: OnceLock<Result<Schema, LoadError>> = OnceLock::new();
        SCHEMA.get_or_init(load).as_ref().map_err(Clone::clone)
    }

    /// Every module, in the order of their names.
    pub fn modules(&self) -> &[&'static Module] {
        &self.modules
    }

    /// The module of a name.
    pub fn module(&self, name: &str) -> Option<&'static Module> {
        self.modules.iter().copied().find(|module| *module.name == *name)
    }

    /// The module of an XML namespace.
    pub fn module_of(&self, namespace: &str) -> Option<&'static Module> {
        self.modules.iter().copied().find(|module| *module.namespace == *namespace)
    }

    /// Top-level data nodes.
    pub const fn data(&self) -> &'static [Definition] {
        self.data
    }

    /// A top-level data node.
    pub fn top(&self, module: &str, name: &str) -> Option<&'static Definition> {
        find(self.data, module, name)
    }

    /// Operations.
    pub const fn rpcs(&self) -> &'static [Definition] {
        self.rpcs
    }

    /// Notifications.
    pub const fn notifications(&self) -> &'static [Definition] {
        self.notifications
    }
}

fn load() -> Result<Schema, LoadError> {
    let refused = |what: &str, error: yang5::Error| {
        LoadError(format!("{what}: {}", error.msg.as_deref().unwrap_or("no reason was given")))
    };
    // libyang keeps a pointer to the table for as long as its context lives: for ever.
    static EMBEDDED: OnceLock<EmbeddedModules> = OnceLock::new();
    let embedded = EMBEDDED.get_or_init(|| {
        let key = |source: &Source| {
            EmbeddedModuleKey::new(source.name, Some(source.revision), None, None)
        };
        SOURCES.iter().map(|source| (key(source), source.text)).collect()
    });
    let mut context = Context::new(ContextFlags::NO_YANGLIBRARY | ContextFlags::DISABLE_SEARCHDIRS)
        .map_err(|error| refused("libyang", error))?;
    context.set_embedded_modules(embedded);
    for source in SOURCES.iter().filter(|source| source.implemented) {
        context
            .load_module(source.name, Some(source.revision), source.features)
            .map_err(|error| refused(source.name, error))?;
    }
    Ok(compiled(context))
}

fn compiled(context: Context) -> Schema {
    let sources: HashMap<(&str, &str), &Source> =
        SOURCES.iter().map(|source| ((source.name, source.revision), source)).collect();
    let mut modules: Vec<&'static Module> = context
        .modules(false)
        .map(|module| {
            let revision = module.revision().unwrap_or("");
            let source = sources.get(&(module.name(), revision));
            &*Box::leak(Box::new(Module {
                name: module.name().into(),
                revision: revision.into(),
                namespace: module.namespace().into(),
                prefix: module.prefix().into(),
                implemented: source.is_some_and(|source| source.implemented),
                features: source.map_or(&[], |source| source.features),
                text: source.map(|source| source.text),
            }))
        })
        .collect();
    modules.sort_by(|one, other| (&one.name, &one.revision).cmp(&(&other.name, &other.revision)));
    let served = || {
        context.modules(false).filter(|module| {
            sources
                .get(&(module.name(), module.revision().unwrap_or("")))
                .is_some_and(|source| source.implemented)
        })
    };
    let all = Names { modules: &modules };
    let data: Vec<_> = served().flat_map(|module| all.definitions(module.data())).collect();
    let rpcs: Vec<_> = served().flat_map(|module| all.definitions(module.rpcs())).collect();
    let notifications: Vec<_> =
        served().flat_map(|module| all.definitions(module.notifications())).collect();
    Schema {
        modules,
        data: data.leak(),
        rpcs: rpcs.leak(),
        notifications: notifications.leak(),
        context,
    }
}

/// The modules by name, while definitions are made.
struct Names<'a> {
    modules: &'a [&'static Module],
}

impl Names<'_> {
    fn module(&self, node: &SchemaNode<'_>) -> Option<&'static Module> {
        let module = node.module();
        let revision = module.revision().unwrap_or("");
        self.modules
            .iter()
            .copied()
            .find(|known| *known.name == *module.name() && *known.revision == *revision)
    }

    fn definitions<'b>(&self, nodes: impl Iterator<Item = SchemaNode<'b>>) -> Vec<Definition> {
        let mut made = Vec::new();
        for node in nodes {
            if node.kind() == SchemaNodeKind::Choice {
                made.extend(node.children().flat_map(|case| self.of_case(&node, &case)));
            } else {
                made.extend(self.definition(&node));
            }
        }
        made
    }

    fn of_case(&self, choice: &SchemaNode<'_>, case: &SchemaNode<'_>) -> Vec<Definition> {
        let mut made = self.definitions(case.children());
        for definition in &mut made {
            let this = Case { choice: choice.name().into(), name: case.name().into() };
            let inner = std::mem::take(&mut definition.cases).into_vec();
            definition.cases = std::iter::once(this).chain(inner).collect();
        }
        made
    }

    fn definition(&self, node: &SchemaNode<'_>) -> Option<Definition> {
        // What a module that is only imported adds to one that is served is not served.
        let module = self.module(node).filter(|module| module.implemented)?;
        let name: Box<str> = node.name().into();
        let mut children = match node.kind() {
            SchemaNodeKind::Rpc => {
                node.input().map(|(input, _)| self.definitions(input)).unwrap_or_default()
            }
            SchemaNodeKind::Leaf | SchemaNodeKind::LeafList => Vec::new(),
            _ => self.definitions(node.children()),
        };
        let kind = match node.kind() {
            SchemaNodeKind::Container => Kind::Container { presence: !node.is_np_container() },
            SchemaNodeKind::List => {
                let keys: Box<[Box<str>]> = node.list_keys().map(|key| key.name().into()).collect();
                // Keys come first, in their order (RFC 7950, section 7.8.5).
                children.sort_by_key(|child: &Definition| {
                    keys.iter().position(|key| *key == child.name).unwrap_or(keys.len())
                });
                Kind::List { keys }
            }
            SchemaNodeKind::Leaf => Kind::Leaf(value_type(node.leaf_type())),
            SchemaNodeKind::LeafList => Kind::LeafList(value_type(node.leaf_type())),
            SchemaNodeKind::AnyData | SchemaNodeKind::AnyXml => Kind::Any,
            SchemaNodeKind::Rpc => Kind::Rpc {
                output: node
                    .output()
                    .map(|(output, _)| self.definitions(output))
                    .unwrap_or_default()
                    .into(),
            },
            SchemaNodeKind::Notification => Kind::Notification,
            _ => return None,
        };
        let default_deny = DENIED_UNLESS_PERMITTED.contains(&(&module.name, &name));
        let default = match node.kind() {
            SchemaNodeKind::Leaf if node.has_default() => {
                node.default_value_canonical().ok().flatten().map(Into::into)
            }
            _ => None,
        };
        let config = node.is_config();
        Some(Definition {
            module,
            name,
            kind,
            config,
            default,
            default_deny,
            children: children.into(),
            cases: Box::default(),
        })
    }
}

fn value_type(leaf: Option<SchemaLeafType<'_>>) -> Type {
    let Some(leaf) = leaf else { return Type::Text };
    let xpath = leaf
        .typedef_name()
        .is_some_and(|name| matches!(&*name, "xpath1.0" | "node-instance-identifier"));
    match leaf.base_type() {
        _ if xpath => Type::Prefixed,
        DataValueType::Uint8
        | DataValueType::Uint16
        | DataValueType::Uint32
        | DataValueType::Int8
        | DataValueType::Int16
        | DataValueType::Int32 => Type::Number,
        DataValueType::Bool => Type::Boolean,
        DataValueType::Empty => Type::Empty,
        DataValueType::IdentityRef | DataValueType::InstanceId => Type::Prefixed,
        DataValueType::LeafRef => {
            leaf.leafref_real_type().map_or(Type::Text, |real| value_type(Some(real)))
        }
        _ => Type::Text,
    }
}
