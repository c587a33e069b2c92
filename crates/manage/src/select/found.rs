//! What libyang finds by an expression: the one call here that is made without the bindings.
//!
//! Theirs keeps the set of what was found for ever (`yang5::data::Data::find_xpath` of 0.4), eight
//! octets for each node, and how many there are is for whoever asks to choose.

use std::collections::HashSet;
use std::ffi::CString;

use yang5::data::{Data as _, DataNodeRef, DataTree};
use yang5::ffi;

use super::XpathError;

/// The nodes of a tree that an expression selects, from its first node.
pub(super) fn found(
    tree: &DataTree<'_>,
    first: &DataNodeRef<'_>,
    expression: &str,
) -> Result<HashSet<*mut ffi::lyd_node>, XpathError> {
    let nul = |_| XpathError("character U+0000 in XPath, expected none".into());
    let text = CString::new(expression).map_err(nul)?;
    if let Some(found) = evaluated(first, &text) {
        return Ok(found);
    }
    // Asked again for the words; what fails leaves nothing behind.
    let refused = tree.find_xpath(expression).err().and_then(|error| error.msg);
    Err(XpathError(refused.unwrap_or_else(|| "not an XPath expression for nodes".into())))
}

#[allow(unsafe_code)]
fn evaluated(first: &DataNodeRef<'_>, text: &CString) -> Option<HashSet<*mut ffi::lyd_node>> {
    let mut set = std::ptr::null_mut();
    // SAFETY: `first` borrows its tree, which is neither changed nor freed meanwhile; `text` ends
    // with a zero. libyang writes `set` where it returns success, and nothing otherwise.
    let status = unsafe { ffi::lyd_find_xpath(first.as_raw(), text.as_ptr(), &raw mut set) };
    if status != ffi::LY_ERR::LY_SUCCESS || set.is_null() {
        return None;
    }
    // SAFETY: the set is ours and was made by libyang just now: `dnodes` points to `count` nodes,
    // or to nothing where there is none. Only the pointers are copied, and they are never followed.
    let found = unsafe {
        let (nodes, count) = ((*set).__bindgen_anon_1.dnodes, (*set).count);
        (0..count as usize).filter(|_| !nodes.is_null()).map(|nth| *nodes.add(nth)).collect()
    };
    // SAFETY: nothing refers to the set any more. Without a destructor only the set itself is freed,
    // not the nodes.
    unsafe { ffi::ly_set_free(set, None) };
    Some(found)
}
