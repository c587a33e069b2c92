//! Documents that others send, checked by libyang against the modules.
//!
//! A document with anything that the modules do not have is refused: libyang by itself would drop
//! it in silence.

use std::fmt;

use yang5::data::{
    DataFormat, DataNodeRef, DataOperation, DataParserFlags, DataTree, DataTreeOwningRef,
    DataValidationFlags,
};

use crate::error::Tag;
use crate::schema::{Definition, Kind, Schema, find};
use crate::tree::{Content, Node};

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// RFC 7951.
    Json,
    /// RFC 7950.
    Xml,
}

impl Encoding {
    const fn format(self) -> DataFormat {
        match self {
            Self::Json => DataFormat::JSON,
            Self::Xml => DataFormat::XML,
        }
    }
}

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The content of a datastore, whole, which has to be valid.
    Datastore,
    /// Parts of one, whose nodes have to exist and whose values have to be of their types.
    Data,
    /// An operation and its input.
    Input,
    /// An operation and its output.
    Output,
    /// A notification.
    Notification,
}

/// Why a document is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// What is wrong, in libyang's words.
    pub what: String,
    /// Where: a path in the data, where there is one.
    pub path: Option<String>,
    /// The `error-app-tag` that the module gives, where it gives one.
    pub app_tag: Option<String>,
    /// What kind of error it is.
    pub tag: Tag,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.path.as_ref().map_or(Ok(()), |path| write!(f, " (at {path})"))
    }
}

impl std::error::Error for ReadError {}

impl From<yang5::Error> for ReadError {
    fn from(error: yang5::Error) -> Self {
        let what =
            error.msg.unwrap_or_else(|| "not valid, for no reason that libyang tells".into());
        let missing = what.starts_with("Mandatory");
        let tag = if missing { Tag::MissingElement } else { Tag::InvalidValue };
        Self { what, path: error.path, app_tag: error.apptag, tag }
    }
}

impl Schema {
    /// Reads a document. `anydata` in it comes without its content.
    ///
    /// # Errors
    ///
    /// The first fault.
    // QUE-yang.1
    pub fn read(
        &'static self,
        encoding: Encoding,
        what: What,
        text: &str,
    ) -> Result<Vec<Node>, ReadError> {
        let tree = self.parse(encoding, what, text)?;
        let Some(first) = tree.reference() else { return Ok(Vec::new()) };
        let top = match what {
            What::Datastore | What::Data => self.data(),
            What::Input | What::Output => self.rpcs(),
            What::Notification => self.notifications(),
        };
        let found = nodes(first.inclusive_siblings(), top, what == What::Output, &|_| true);
        if !matches!(what, What::Datastore | What::Data) {
            once(&found)?;
        }
        Ok(found)
    }

    /// Reads a whole `rpc` message of NETCONF: the operation and its input.
    ///
    /// # Errors
    ///
    /// The first fault.
    pub fn read_rpc(&'static self, text: &str) -> Result<Node, ReadError> {
        without_nul(text)?;
        let parsed =
            DataTreeOwningRef::parse_netconf_rpc_op(&self.context, text, DataParserFlags::STRICT)?;
        let root = parsed.tree.reference().into_iter();
        let mut found = nodes(root, self.rpcs(), false, &|_| true);
        once(&found)?;
        found.pop().ok_or_else(|| ReadError {
            what: "no operation, expected one of the modules".into(),
            path: None,
            app_tag: None,
            tag: Tag::InvalidValue,
        })
    }

    /// Reads the body of a call in RESTCONF, `module:input` with what is in it.
    ///
    /// # Errors
    ///
    /// The first fault.
    pub fn read_restconf_input(
        &'static self,
        operation: &'static Definition,
        encoding: Encoding,
        text: &str,
    ) -> Result<Node, ReadError> {
        without_nul(text)?;
        let path = format!("/{operation}");
        let mut parsed = DataTreeOwningRef::new_path(&self.context, &path, None, false)?;
        parsed.parse_restconf_rpc_op(text, encoding.format(), DataParserFlags::STRICT)?;
        let root = parsed.tree.reference().into_iter();
        let mut found = nodes(root, self.rpcs(), false, &|_| true);
        once(&found)?;
        Ok(found.pop().unwrap_or_else(|| Node::inner(operation, Vec::new())))
    }

    pub(crate) fn parse(
        &'static self,
        encoding: Encoding,
        what: What,
        text: &str,
    ) -> Result<DataTree<'static>, ReadError> {
        without_nul(text)?;
        let strict = || DataParserFlags::STRICT;
        let format = encoding.format();
        let operation =
            |operation| DataTree::parse_op_string(&self.context, text, format, strict(), operation);
        Ok(match what {
            What::Datastore => DataTree::parse_string(
                &self.context,
                text,
                format,
                strict(),
                DataValidationFlags::PRESENT,
            )?,
            What::Data => DataTree::parse_string(
                &self.context,
                text,
                format,
                strict() | DataParserFlags::NO_VALIDATION,
                DataValidationFlags::PRESENT,
            )?,
            What::Input => operation(DataOperation::RpcYang)?,
            What::Output => operation(DataOperation::ReplyYang)?,
            What::Notification => operation(DataOperation::NotificationYang)?,
        })
    }
}

/// Refuses what can be there once and is there twice, and nodes of different cases of a choice:
/// libyang reads operations and notifications without asking that.
fn once(siblings: &[Node]) -> Result<(), ReadError> {
    let refused =
        |what: String| Err(ReadError { what, path: None, app_tag: None, tag: Tag::BadElement });
    let mut seen: Vec<&Definition> = Vec::new();
    for node in siblings {
        once(node.children())?;
        let definition = node.definition;
        if seen.iter().any(|other| definition.is(other)) {
            if definition.many() {
                continue;
            }
            return refused(format!("{definition} twice, expected once"));
        }
        for other in &seen {
            let mut choices = definition.cases.iter().zip(&other.cases);
            let apart = choices.find(|(one, other)| one != other);
            if let Some((one, other_case)) = apart
                && one.choice == other_case.choice
            {
                return refused(format!(
                    "{other} and {definition}, expected one case of choice {}",
                    one.choice
                ));
            }
        }
        seen.push(definition);
    }
    Ok(())
}

/// libyang's texts end at the first such character.
fn without_nul(text: &str) -> Result<(), ReadError> {
    if text.contains('\0') {
        let what = "character U+0000, expected none".into();
        return Err(ReadError { what, path: None, app_tag: None, tag: Tag::InvalidValue });
    }
    Ok(())
}

/// Turns libyang's nodes into ours, leaving out those that are not wanted with all that is in them.
pub(crate) fn nodes<'a>(
    found: impl Iterator<Item = DataNodeRef<'a>>,
    among: &'static [Definition],
    output: bool,
    wanted: &impl Fn(&DataNodeRef<'a>) -> bool,
) -> Vec<Node> {
    found
        .filter(|node| wanted(node))
        .filter_map(|node| {
            let schema = node.schema();
            let definition = find(among, schema.module().name(), schema.name())?;
            let content = match &definition.kind {
                Kind::Leaf(_) | Kind::LeafList(_) => {
                    Content::Value(node.value_canonical().unwrap_or_default().into())
                }
                Kind::Any => Content::Any(Vec::new()),
                Kind::Rpc { output: out } => {
                    let among = if output { &**out } else { &*definition.children };
                    Content::Inner(nodes(node.children(), among, output, wanted))
                }
                _ => Content::Inner(nodes(node.children(), &definition.children, output, wanted)),
            };
            Some(Node { definition, content })
        })
        .collect()
}
