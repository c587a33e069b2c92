//! A JSON value as it stands: with the order of its members, and with an error for one that is
//! there twice, which RFC 7951 (by way of I-JSON) does not allow and most readers let through.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number that is a whole one of 64 bits without a sign.
    Whole(u64),
    /// Any other number, as text.
    Number(String),
    /// A string.
    Text(String),
    /// An array.
    Array(Vec<Node>),
    /// An object.
    Object(Vec<(String, Node)>),
}

/// Characters of a value that are shown.
const SHOWN_MAX: usize = 40;

impl Node {
    /// A member of an object by its name as it is written.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(own, _)| own == name).map(|(_, node)| node)
    }

    /// What it is, for those who expected something else.
    pub fn kind(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Whole(number) => format!("the number {number}"),
            Self::Number(text) => format!("the number {text}"),
            Self::Text(text) => format!("the string {}", shown(text)),
            Self::Array(_) => "an array".to_owned(),
            Self::Object(_) => "an object".to_owned(),
        }
    }
}

/// A text of others, quoted, without control characters, and not too long.
pub fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN_MAX).collect();
    if cut.len() < text.len() { format!("{cut:?}...") } else { format!("{cut:?}") }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Whole(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(u64::try_from(number).map_or_else(|_| Node::Number(number.to_string()), Node::Whole))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Number(format!("{number:?}")))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = sequence.next_element()? {
            nodes.push(node);
        }
        Ok(Node::Array(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut members: Vec<(String, Node)> = Vec::new();
        while let Some((name, node)) = map.next_entry::<String, Node>()? {
            members.push((name, node));
        }
        let mut names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = shown(pair[0]);
            return Err(A::Error::custom(format_args!("member {name} twice in one object")));
        }
        Ok(Node::Object(members))
    }
}
