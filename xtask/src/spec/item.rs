//! Items of a Rust source with the lines they cover, and whether they are tests.

use anyhow::Context as _;
use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// A function, type, constant, module or macro call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// `Type::method`, `function`, `Type`; nothing for a module.
    pub name: String,
    /// First line, doc comments and attributes included, from 1.
    pub first_line: usize,
    /// Last line.
    pub last_line: usize,
    /// Whether only a test build compiles it.
    pub test: bool,
}

/// What a source declares.
#[derive(Debug, Default)]
pub struct Items {
    /// In the order of the source, an outer item before those in it.
    pub items: Vec<Item>,
    /// Names of modules in files of their own that only a test build compiles.
    pub test_modules: Vec<String>,
}

/// Reads the items of a source; `test` says that the file as a whole is a test.
pub fn of(source: &str, test: bool) -> anyhow::Result<Items> {
    let file = syn::parse_file(source).map_err(|error| {
        let start = error.span().start();
        anyhow::anyhow!("{error}").context(format!("line {}", start.line))
    });
    let mut collector = Collector { found: Items::default(), owner: None, test };
    collector.visit_file(&file.context("not readable as Rust")?);
    Ok(collector.found)
}

impl Items {
    /// The item that a comment belongs to: the one that starts right below it, `code_line` being
    /// the first line after it that is neither blank nor a comment, else the innermost around it.
    pub fn at(&self, line: usize, code_line: usize) -> Option<&Item> {
        let below = |item: &&Item| line < item.first_line && item.first_line <= code_line;
        let around = |item: &&Item| item.first_line <= line && line <= item.last_line;
        let innermost = |item: &&Item| item.last_line - item.first_line;
        self.items
            .iter()
            .find(below)
            .or_else(|| self.items.iter().filter(around).min_by_key(innermost))
    }
}

struct Collector {
    found: Items,
    owner: Option<String>,
    test: bool,
}

impl Collector {
    fn add(&mut self, name: String, span: Span, test: bool) {
        let (first_line, last_line) = (span.start().line, span.end().line);
        self.found.items.push(Item { name, first_line, last_line, test });
    }

    /// Adds an item, then visits what is in it with its test state and, if given, as its owner.
    fn within(
        &mut self,
        name: String,
        span: Span,
        attributes: &[syn::Attribute],
        owner: Option<String>,
        inside: impl FnOnce(&mut Self),
    ) {
        let outer_test = self.test;
        self.test |= attributes.iter().any(is_test);
        self.add(name, span, self.test);
        let outer_owner = std::mem::replace(&mut self.owner, owner);
        inside(self);
        self.owner = outer_owner;
        self.test = outer_test;
    }

    fn owned(&self, name: &syn::Ident) -> String {
        self.owner.as_ref().map_or_else(|| name.to_string(), |owner| format!("{owner}::{name}"))
    }
}

impl<'a> Visit<'a> for Collector {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if item.content.is_none() && (self.test || item.attrs.iter().any(is_test)) {
            self.found.test_modules.push(item.ident.to_string());
        }
        self.within(String::new(), item.span(), &item.attrs, None, |inside| {
            visit::visit_item_mod(inside, item);
        });
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        let name = item.sig.ident.to_string();
        // What a function declares inside itself is cited under the function's name.
        self.within(name, item.span(), &item.attrs, None, |_| ());
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.within(item.ident.to_string(), item.span(), &item.attrs, None, |_| ());
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        self.within(item.ident.to_string(), item.span(), &item.attrs, None, |_| ());
    }

    fn visit_item_type(&mut self, item: &'a syn::ItemType) {
        self.within(item.ident.to_string(), item.span(), &item.attrs, None, |_| ());
    }

    fn visit_item_const(&mut self, item: &'a syn::ItemConst) {
        self.within(item.ident.to_string(), item.span(), &item.attrs, None, |_| ());
    }

    fn visit_item_static(&mut self, item: &'a syn::ItemStatic) {
        self.within(item.ident.to_string(), item.span(), &item.attrs, None, |_| ());
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        let name = item.ident.to_string();
        self.within(name.clone(), item.span(), &item.attrs, Some(name), |inside| {
            visit::visit_item_trait(inside, item);
        });
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let name = type_name(&item.self_ty);
        self.within(name.clone(), item.span(), &item.attrs, Some(name), |inside| {
            visit::visit_item_impl(inside, item);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.within(self.owned(&item.sig.ident), item.span(), &item.attrs, None, |_| ());
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        self.within(self.owned(&item.sig.ident), item.span(), &item.attrs, None, |_| ());
    }

    fn visit_impl_item_const(&mut self, item: &'a syn::ImplItemConst) {
        self.within(self.owned(&item.ident), item.span(), &item.attrs, None, |_| ());
    }

    fn visit_item_macro(&mut self, item: &'a syn::ItemMacro) {
        let path = item.mac.path.segments.last().map(|segment| segment.ident.to_string());
        let name = item.ident.as_ref().map(ToString::to_string).or(path).unwrap_or_default();
        self.within(name, item.span(), &item.attrs, None, |inside| {
            inside.functions_in_macro(item.mac.tokens.clone());
        });
    }
}

impl Collector {
    /// Functions that a macro call such as `proptest!` holds: from `fn` to the end of its braces.
    fn functions_in_macro(&mut self, tokens: TokenStream) {
        let mut open: Option<(String, Span)> = None;
        let mut after_fn = false;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if after_fn => {
                    open = Some((ident.to_string(), ident.span()));
                    after_fn = false;
                }
                TokenTree::Ident(ident) => after_fn = ident == "fn",
                TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::Brace => {
                    if let Some((name, start)) = open.take() {
                        let (first_line, last_line) = (start.start().line, group.span().end().line);
                        let test = self.test;
                        self.found.items.push(Item { name, first_line, last_line, test });
                    }
                }
                _ => {}
            }
        }
    }
}

fn type_name(of: &syn::Type) -> String {
    match of {
        syn::Type::Path(path) => {
            path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
        }
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => String::new(),
    }
}

/// `#[test]`, `#[cfg(test)]` or `#[cfg(all(test, ..))]`. Code under `any(test, ..)` or
/// `not(test)` also stands in other builds, so it is no test.
fn is_test(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else {
        return false;
    };
    list.path.is_ident("cfg") && requires_test(list.tokens.clone())
}

fn requires_test(tokens: TokenStream) -> bool {
    let mut all = false;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident == "test" => return true,
            TokenTree::Ident(ident) => all = ident == "all",
            TokenTree::Group(group) if all && requires_test(group.stream()) => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
/// Doc.
pub struct A;

impl A {
    // above
    /// Doc.
    #[inline]
    fn b(&self) {
        // inside
    }
}

#[cfg(test)]
mod tests {
    fn shared() {}
    #[test]
    fn claim() {}
    proptest! {
        #[test]
        fn property(a in any()) {
            // inside
        }
    }
}

#[cfg(test)]
mod elsewhere;

#[cfg(any(test, feature = \"x\"))]
fn both() {}
";

    fn named<'a>(items: &'a Items, name: &str) -> &'a Item {
        items.items.iter().find(|item| item.name == name).expect("the source declares it")
    }

    #[test]
    fn an_item_has_its_name_its_lines_and_its_kind() {
        let items = of(SOURCE, false).unwrap();
        let method = named(&items, "A::b");
        assert_eq!((method.first_line, method.last_line, method.test), (6, 10, false));
        assert_eq!(named(&items, "A").first_line, 1);
        for (name, test) in [("shared", true), ("claim", true), ("property", true), ("both", false)]
        {
            assert_eq!(named(&items, name).test, test, "{name}");
        }
    }

    #[test]
    fn a_test_module_in_a_file_of_its_own_is_named() {
        assert_eq!(of(SOURCE, false).unwrap().test_modules, ["elsewhere"]);
    }

    #[test]
    fn a_comment_belongs_to_the_item_below_it_or_else_around_it() {
        let items = of(SOURCE, false).unwrap();
        let name = |line, code_line| items.at(line, code_line).map(|item| item.name.as_str());
        assert_eq!(name(5, 7), Some("A::b"), "above");
        assert_eq!(name(9, 10), Some("A::b"), "inside");
        assert_eq!(name(21, 22), Some("property"), "inside a macro");
        assert_eq!(name(11, 13), Some(""), "above a module, below an impl");
        assert_eq!(name(25, 25), None, "between items");
    }

    #[test]
    fn in_a_test_file_everything_is_a_test() {
        assert!(of("fn a() {}", true).unwrap().items.iter().all(|item| item.test));
    }

    #[test]
    fn what_is_no_rust_is_refused_with_its_line() {
        let error = format!("{:#}", of("fn a() {}\nfn fn", false).unwrap_err());
        assert!(error.starts_with("not readable as Rust: line 2: "), "{error}");
    }
}
