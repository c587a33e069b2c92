//! An instance of the schema: what a datastore holds, or the input or output of an operation.
//!
//! Nodes of one list stand beside each other in the children of their parent. Values are in their
//! canonical form (RFC 7950, section 9), with module names as prefixes.

use crate::schema::{Definition, Kind};

/// A node and what is in it.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is an instance of.
    pub definition: &'static Definition,
    /// What it holds.
    pub content: Content,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub enum Content {
    /// Of a container, an entry of a list, an operation or a notification: its children. A list's
    /// keys come first.
    Inner(Vec<Node>),
    /// Of a leaf, or of one value of a leaf-list: the value in its canonical form.
    Value(Box<str>),
    /// Of `anydata`: whatever somebody sent.
    Any(Vec<Any>),
}

/// A piece of `anydata`: an element whose definition need not be known here.
#[derive(Clone, Debug)]
pub struct Any {
    /// What it is, where that is known.
    pub definition: Option<&'static Definition>,
    /// The name of its module; its namespace where no module has it.
    pub module: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Prefixes that its value may have, with their namespaces.
    pub declared: Vec<(Box<str>, Box<str>)>,
    /// Its value, where there is nothing in it.
    pub text: Box<str>,
    /// What is in it.
    pub children: Vec<Self>,
}

impl Node {
    /// A node with these children.
    pub const fn inner(definition: &'static Definition, children: Vec<Self>) -> Self {
        Self { definition, content: Content::Inner(children) }
    }

    /// A leaf or a value of a leaf-list.
    pub fn value(definition: &'static Definition, value: impl Into<Box<str>>) -> Self {
        Self { definition, content: Content::Value(value.into()) }
    }

    /// Its children; none where it has a value.
    pub fn children(&self) -> &[Self] {
        match &self.content {
            Content::Inner(children) => children,
            Content::Value(_) | Content::Any(_) => &[],
        }
    }

    /// The first child of a name, in any module.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children().iter().find(|child| *child.definition.name == *name)
    }

    /// Its value, where it has one.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Value(value) => Some(value),
            Content::Inner(_) | Content::Any(_) => None,
        }
    }

    /// The value of the leaf of a name in it.
    pub fn leaf(&self, name: &str) -> Option<&str> {
        self.child(name)?.text()
    }

    /// The values of its keys, in their order; of a list only.
    pub fn key_values(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.definition.keys().iter().filter_map(|key| Some((&**key, self.leaf(key)?)))
    }

    /// Whether it is a container that says nothing: without presence and with nothing in it.
    pub fn says_nothing(&self) -> bool {
        matches!(self.definition.kind, Kind::Container { presence: false })
            && self.children().is_empty()
    }
}

/// Makes the children of a node one after the other, in the order in which they are told.
///
/// Names that the schema does not have are faults of this program; they are left out, and fail a
/// debug build.
#[derive(Debug)]
pub struct Builder {
    definition: &'static Definition,
    children: Vec<Node>,
}

impl Builder {
    /// Of an instance of this definition.
    pub const fn new(definition: &'static Definition) -> Self {
        Self { definition, children: Vec::new() }
    }

    /// The definition of a child: `name` in the module of the parent, or `module:name`.
    fn child(&self, name: &str) -> Option<&'static Definition> {
        let found = match name.split_once(':') {
            Some((module, name)) => self.definition.child(Some(module), name),
            None => self.definition.child(None, name),
        };
        debug_assert!(found.is_some(), "{} has no {name}", self.definition);
        found
    }

    /// A leaf, or one more value of a leaf-list.
    #[must_use]
    pub fn leaf(mut self, name: &str, value: impl Into<Box<str>>) -> Self {
        if let Some(definition) = self.child(name) {
            self.children.push(Node::value(definition, value));
        }
        self
    }

    /// The same where there is a value.
    #[must_use]
    pub fn leaf_if<T: Into<Box<str>>>(self, name: &str, value: Option<T>) -> Self {
        match value {
            Some(value) => self.leaf(name, value),
            None => self,
        }
    }

    /// A container, or one more entry of a list.
    #[must_use]
    pub fn inner(mut self, name: &str, fill: impl FnOnce(Self) -> Self) -> Self {
        if let Some(definition) = self.child(name) {
            self.children.push(fill(Self::new(definition)).build());
        }
        self
    }

    /// One entry of a list for each of these.
    #[must_use]
    pub fn each<T>(
        self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut fill: impl FnMut(Self, T) -> Self,
    ) -> Self {
        items.into_iter().fold(self, |all, item| all.inner(name, |entry| fill(entry, item)))
    }

    /// `anydata` with these in it.
    #[must_use]
    pub fn any(mut self, name: &str, nodes: Vec<Any>) -> Self {
        if let Some(definition) = self.child(name) {
            self.children.push(Node { definition, content: Content::Any(nodes) });
        }
        self
    }

    /// A node that is made already; it has to be of a child's definition.
    #[must_use]
    pub fn node(mut self, node: Node) -> Self {
        debug_assert!(self.definition.children.iter().any(|child| child.is(node.definition)));
        self.children.push(node);
        self
    }

    /// The node.
    pub fn build(self) -> Node {
        Node::inner(self.definition, self.children)
    }
}
