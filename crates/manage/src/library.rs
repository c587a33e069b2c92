//! `ietf-yang-library` (RFC 8525): which modules this server has.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use crate::schema::{Module, Schema};
use crate::tree::{Builder, Node};

impl Schema {
    /// What the content of the library is called: the same as long as it is the same.
    pub fn content_id(&self) -> String {
        let mut hasher = foldhash::fast::FixedState::default().build_hasher();
        for module in self.modules() {
            (&module.name, &module.revision, module.implemented, module.features).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }
}

/// `ietf-yang-library:yang-library`. `location` gives the URL of a module's text, where there is one.
pub fn yang_library(schema: &Schema, location: impl Fn(&Module) -> Option<String>) -> Option<Node> {
    let definition = schema.top("ietf-yang-library", "yang-library")?;
    let known = |implemented: bool| {
        let all = schema.modules().iter().filter(move |module| module.implemented == implemented);
        // libyang's own, which nobody else has.
        all.filter(|module| module.text.is_some())
    };
    let node = Builder::new(definition)
        .inner("module-set", |set| {
            let set = set.leaf("name", "all").each("module", known(true), |entry, module| {
                let entry = entry
                    .leaf("name", module.name.clone())
                    .leaf("revision", module.revision.clone())
                    .leaf("namespace", module.namespace.clone())
                    .leaf_if("location", location(module));
                module.features.iter().fold(entry, |entry, feature| entry.leaf("feature", *feature))
            });
            set.each("import-only-module", known(false), |entry, module| {
                entry
                    .leaf("name", module.name.clone())
                    .leaf("revision", module.revision.clone())
                    .leaf("namespace", module.namespace.clone())
                    .leaf_if("location", location(module))
            })
        })
        .inner("schema", |entry| entry.leaf("name", "all").leaf("module-set", "all"))
        .each("datastore", ["operational", "running"], |entry, name| {
            entry.leaf("name", format!("ietf-datastores:{name}")).leaf("schema", "all")
        })
        .leaf("content-id", schema.content_id());
    Some(node.build())
}

/// `ietf-yang-library:modules-state`: the same for clients from before RFC 8525.
pub fn modules_state(
    schema: &Schema,
    location: impl Fn(&Module) -> Option<String>,
) -> Option<Node> {
    let definition = schema.top("ietf-yang-library", "modules-state")?;
    let known = schema.modules().iter().filter(|module| module.text.is_some());
    let node = Builder::new(definition).leaf("module-set-id", schema.content_id()).each(
        "module",
        known,
        |entry, module| {
            let conformance = if module.implemented { "implement" } else { "import" };
            let entry = entry
                .leaf("name", module.name.clone())
                .leaf("revision", module.revision.clone())
                .leaf_if("schema", location(module))
                .leaf("namespace", module.namespace.clone());
            let entry = module
                .features
                .iter()
                .fold(entry, |entry, feature| entry.leaf("feature", *feature));
            entry.leaf("conformance-type", conformance)
        },
    );
    Some(node.build())
}
