//! Where the services can be made to die, held against where they commit.
//!
//! The kill test dies at every declared failpoint. So a commit that has none before and after it is a place
//! where nobody has ever looked, and a declared name that no code passes is a test that shows nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use syn::visit::{self, Visit};
use walkdir::WalkDir;

use crate::Violation;

const SERVICES: [&str; 4] = [
    "resource-catalog-service/server/src",
    "control-plane-service/server/src",
    "execution-plane-service/server/src",
    "execution-plane-service/runner/src",
];

/// Commits that need no failpoint of their own: file, function, why.
const EXCUSED: [(&str, &str, &str); 8] = [
    (
        "control-plane-service/server/src/engine/mod.rs",
        "advance_all",
        "ends in Turn::commit",
    ),
    (
        "control-plane-service/server/src/http/operations/create.rs",
        "finish",
        "ends in Turn::commit",
    ),
    (
        "control-plane-service/server/src/packs/delivery.rs",
        "deliver",
        "has only read",
    ),
    (
        "control-plane-service/server/src/projection/follower.rs",
        "round",
        "has only read",
    ),
    (
        "control-plane-service/server/src/projection/follower.rs",
        "heard",
        "says how fresh the copy is, and the next answer says it again",
    ),
    (
        "control-plane-service/server/src/projection/store.rs",
        "organizations",
        "has only read",
    ),
    (
        "resource-catalog-service/server/src/resources.rs",
        "finish",
        "ends in Session::commit",
    ),
    (
        "resource-catalog-service/server/src/resources.rs",
        "put",
        "ends in Session::commit",
    ),
];

/// What one function does that matters here, in the order of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Hit,
    Commit,
}

/// What the sources of one service hold.
#[derive(Debug, Default)]
struct Found {
    /// By file and function.
    functions: BTreeMap<(String, String), Vec<Step>>,
    declared: BTreeSet<String>,
    /// Every text outside a declaration.
    texts: BTreeSet<String>,
    hit: BTreeSet<String>,
}

pub fn check(root: &Path) -> Result<Vec<Violation>> {
    let mut found = Found::default();
    for service in SERVICES {
        for entry in WalkDir::new(root.join(service)).into_iter().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "rs") {
                let place = entry.path().strip_prefix(root).unwrap_or(entry.path());
                let text = fs::read_to_string(entry.path())?;
                let file = syn::parse_file(&text).with_context(|| format!("{} cannot be parsed", place.display()))?;
                found.read(&place.to_string_lossy(), &file);
            }
        }
    }
    Ok(found.violations(&EXCUSED))
}

impl Found {
    fn read(&mut self, place: &str, file: &syn::File) {
        let mut reader = Reader {
            place,
            within: Vec::new(),
            found: self,
        };
        reader.visit_file(file);
    }

    fn violations(&self, excused: &[(&str, &str, &str)]) -> Vec<Violation> {
        let mut told = Vec::new();
        for ((file, function), steps) in &self.functions {
            let is_excused = excused.iter().any(|(f, name, _)| f == file && name == function);
            if !is_excused && !is_surrounded(steps) {
                let what = format!("{function} commits without a failpoint before and after it");
                told.push(Violation::new(file.as_str(), what));
            }
        }
        for (file, function, _) in excused {
            let key = ((*file).to_owned(), (*function).to_owned());
            if self.functions.get(&key).is_none_or(|steps| is_surrounded(steps)) {
                told.push(Violation::new(*file, format!("{function} needs no excuse any more")));
            }
        }
        for name in self.declared.difference(&self.texts) {
            told.push(Violation::new(name.as_str(), "declared, and no code passes it"));
        }
        for name in self.hit.difference(&self.declared) {
            told.push(Violation::new(name.as_str(), "passed, and not declared"));
        }
        told.sort();
        told
    }
}

/// Each commit has a failpoint between it and the one before it, and one between it and the next.
fn is_surrounded(steps: &[Step]) -> bool {
    let mut around = steps.split(|step| *step == Step::Commit);
    steps.iter().all(|step| *step == Step::Hit) || around.all(|between| !between.is_empty())
}

/// Reads one file.
struct Reader<'f> {
    place: &'f str,
    within: Vec<String>,
    found: &'f mut Found,
}

impl Reader<'_> {
    fn step(&mut self, step: Step) {
        if let Some(function) = self.within.last() {
            let key = (self.place.to_owned(), function.clone());
            self.found.functions.entry(key).or_default().push(step);
        }
    }

    fn function<'ast>(&mut self, name: &syn::Ident, attributes: &[syn::Attribute], block: &'ast syn::Block)
    where
        Self: Visit<'ast>,
    {
        if !is_test(attributes) {
            self.within.push(name.to_string());
            self.visit_block(block);
            self.within.pop();
        }
    }
}

/// `#[cfg(test)]` and `#[test]`.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<syn::Ident>()
                    .is_ok_and(|condition| condition == "test"))
    })
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig.ident, &function.attrs, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig.ident, &function.attrs, &function.block);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        visit::visit_expr_method_call(self, call);
        if call.method == "commit" && call.args.is_empty() {
            self.step(Step::Commit);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let is_hit = matches!(&*call.func, syn::Expr::Path(path)
            if path.path.segments.last().is_some_and(|last| last.ident == "hit"));
        if is_hit {
            self.step(Step::Hit);
            if let Some(syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(name),
                ..
            })) = call.args.first()
            {
                self.found.hit.insert(name.value());
            }
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.found.texts.insert(text.value());
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if call.path.segments.last().is_some_and(|last| last.ident == "register") {
            self.found.declared.extend(texts_in(&call.tokens.to_string()));
            return;
        }
        // What a macro is given is read as far as it is expressions or statements.
        let parser = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        if let Ok(arguments) = call.parse_body_with(parser) {
            arguments.iter().for_each(|argument| self.visit_expr(argument));
        } else if let Ok(statements) = call.parse_body_with(syn::Block::parse_within) {
            statements.iter().for_each(|statement| self.visit_stmt(statement));
        }
    }
}

/// The texts in a declaration that have a dot: its names, not its documentation.
fn texts_in(tokens: &str) -> impl Iterator<Item = String> + '_ {
    let quoted = tokens.split('"').skip(1).step_by(2);
    let is_name = |text: &&str| text.contains('.') && !text.contains(' ');
    quoted.filter(is_name).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &str = r#"failpoints::register! { /// All. These are names.
        pub const ALL = ["a.b.before_commit", "a.b.after_commit"]; }"#;

    fn told_of(body: &str, excused: &[(&str, &str, &str)]) -> Vec<String> {
        let mut found = Found::default();
        found.read("a.rs", &syn::parse_file(&format!("{DECLARED} {body}")).unwrap());
        let told = found.violations(excused);
        told.iter().map(ToString::to_string).collect()
    }

    const WHOLE: &str = r#"async fn put() { failpoints::hit("a.b.before_commit"); tx.commit().await?;
        failpoints::hit("a.b.after_commit"); }"#;

    #[test]
    fn a_commit_between_two_failpoints_is_well() {
        assert!(told_of(WHOLE, &[]).is_empty());
    }

    #[test]
    fn a_commit_without_one_of_them_is_told_unless_it_is_excused() {
        for body in [
            "async fn other() { tx.commit().await?; }",
            r#"impl A { async fn other(&self) { failpoints::hit("a.b.before_commit"); tx.commit().await?; } }"#,
            r#"async fn other() { futures::try_join!(async { tx.commit().await })?; points::hit("a.b.after_commit"); }"#,
            r#"async fn other() { points::hit("a.b.before_commit"); tx.commit().await?; tx.commit().await?;
                points::hit("a.b.after_commit"); }"#,
        ] {
            let body = format!("{WHOLE} {body}");
            let told = told_of(&body, &[]);
            assert_eq!(told, ["a.rs: other commits without a failpoint before and after it"]);
            assert!(told_of(&body, &[("a.rs", "other", "reads")]).is_empty());
        }
    }

    #[test]
    fn an_excuse_that_nothing_needs_is_told() {
        assert_eq!(
            told_of(WHOLE, &[("a.rs", "put", "reads")]),
            ["a.rs: put needs no excuse any more"]
        );
        assert_eq!(
            told_of(WHOLE, &[("b.rs", "put", "reads")]),
            ["b.rs: put needs no excuse any more"]
        );
    }

    #[test]
    fn tests_may_commit_as_they_like() {
        let tests = "#[cfg(test)] mod tests { fn f() { tx.commit(); } } #[test] fn g() { tx.commit(); }";
        assert!(told_of(&format!("{WHOLE} {tests}"), &[]).is_empty());
    }

    #[test]
    fn names_and_code_agree() {
        let told = told_of(
            r#"fn put() { failpoints::hit("a.c"); sequencer("a.b.before_commit"); }"#,
            &[],
        );
        assert_eq!(
            told,
            [
                "a.b.after_commit: declared, and no code passes it",
                "a.c: passed, and not declared"
            ]
        );
    }
}
