//! Which operations of a service's API the code of another calls.
//!
//! Read from the sources: a client's methods say verb and path, a caller's sources say which methods of
//! which client they call. Methods are told apart by client, name and number of arguments, so what is
//! found is rather too much than too little.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use syn::visit::{self, Visit};
use walkdir::WalkDir;

const VERBS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// A method of a client, as its callers see it: the client's name, its own, how many arguments it takes.
type Method = (String, String, usize);
/// `GET /v1/things/{}`: the names of the parameters are the document's business.
pub type Operation = String;

/// What one function, or one of several, does.
#[derive(Debug, Default, Clone)]
struct Body {
    verbs: BTreeSet<String>,
    paths: BTreeSet<String>,
    calls: BTreeSet<String>,
}

/// The operations that sources below `caller` call by the clients below `client`.
pub fn called(caller: &Path, client: &Path) -> Result<BTreeSet<Operation>> {
    Ok(used(&methods(&sources(client)?), &sources(caller)?))
}

/// The operations that sources below `caller` call by their path, without a client's method.
pub fn direct(caller: &Path) -> Result<BTreeSet<Operation>> {
    let mut found = Caller::default();
    sources(caller)?.iter().for_each(|file| found.visit_file(file));
    Ok(found.direct)
}

/// The operation's path without the names of its parameters.
pub fn nameless(operation: &str) -> Operation {
    let mut short = String::new();
    let mut depth = 0_u32;
    for character in operation.chars() {
        match character {
            '{' => {
                depth += 1;
                short.push('{');
            }
            '}' => {
                depth = depth.saturating_sub(1);
                short.push('}');
            }
            '?' if depth == 0 => break,
            other if depth == 0 => short.push(other),
            _ => {}
        }
    }
    short
}

fn sources(directory: &Path) -> Result<Vec<syn::File>> {
    let files = WalkDir::new(directory.join("src")).into_iter().flatten();
    files
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "rs"))
        .map(|entry| {
            let text = fs::read_to_string(entry.path())?;
            syn::parse_file(&text).with_context(|| format!("{} cannot be parsed", entry.path().display()))
        })
        .collect()
}

/// Every public method, with the operations that it can call.
fn methods(files: &[syn::File]) -> BTreeMap<Method, BTreeSet<Operation>> {
    let mut found = BTreeMap::new();
    for file in files {
        let mut bodies: BTreeMap<String, Body> = BTreeMap::new();
        let mut public = Vec::new();
        for item in &file.items {
            match item {
                syn::Item::Fn(function) => {
                    bodies.insert(function.sig.ident.to_string(), body(&function.block));
                }
                syn::Item::Impl(block) => public.extend(of_client(block, &mut bodies)),
                _ => {}
            }
        }
        for (client, name, arguments) in public {
            let mut whole = Body::default();
            gather(&name, &bodies, &mut BTreeSet::new(), &mut whole);
            let operations = whole.operations();
            found.insert((client, name, arguments), operations);
        }
    }
    found
}

fn of_client(block: &syn::ItemImpl, bodies: &mut BTreeMap<String, Body>) -> Vec<Method> {
    let syn::Type::Path(path) = &*block.self_ty else {
        return Vec::new();
    };
    let client = path.path.segments.last().map(|segment| segment.ident.to_string());
    let Some(client) = client.filter(|_| block.trait_.is_none()) else {
        return Vec::new();
    };
    let mut public = Vec::new();
    for item in &block.items {
        if let syn::ImplItem::Fn(function) = item {
            let name = function.sig.ident.to_string();
            bodies.insert(name.clone(), body(&function.block));
            if matches!(function.vis, syn::Visibility::Public(_)) && function.sig.receiver().is_some() {
                public.push((client.clone(), name, function.sig.inputs.len() - 1));
            }
        }
    }
    public
}

/// What `name` does, and what the functions beside it do for it.
fn gather(name: &str, bodies: &BTreeMap<String, Body>, seen: &mut BTreeSet<String>, whole: &mut Body) {
    let Some(body) = bodies.get(name).filter(|_| seen.insert(name.to_owned())) else {
        return;
    };
    whole.verbs.extend(body.verbs.iter().cloned());
    whole.paths.extend(body.paths.iter().cloned());
    for call in &body.calls {
        gather(call, bodies, seen, whole);
    }
}

impl Body {
    fn operations(&self) -> BTreeSet<Operation> {
        let of_path = |path: &String| {
            let path = nameless(path);
            let with = |verb: &String| format!("{} {path}", verb.to_uppercase());
            self.verbs.iter().map(with).collect::<Vec<_>>()
        };
        self.paths.iter().flat_map(of_path).collect()
    }
}

/// `self.client`, `self.0`, `client`: maps have a `get`, too.
fn is_client(receiver: &syn::Expr) -> bool {
    match receiver {
        syn::Expr::Field(field) => match &field.member {
            syn::Member::Named(name) => name == "client",
            syn::Member::Unnamed(index) => index.index == 0,
        },
        syn::Expr::Path(path) => path.path.is_ident("client"),
        _ => false,
    }
}

fn body(block: &syn::Block) -> Body {
    let mut body = Body::default();
    body.visit_block(block);
    body
}

impl<'ast> Visit<'ast> for Body {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        if VERBS.contains(&name.as_str()) && is_client(&call.receiver) {
            self.verbs.insert(name.clone());
        }
        if matches!(&*call.receiver, syn::Expr::Path(path) if path.path.is_ident("self")) {
            self.calls.insert(name);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(path) = &*call.func
            && let Some(last) = path.path.segments.last()
        {
            self.calls.insert(last.ident.to_string());
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        let text = text.value();
        if text.starts_with("/v1/") {
            self.paths.insert(text);
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // `format!`, `stream!` and the like: their arguments as far as they are expressions.
        let parser = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        if let Ok(arguments) = call.parse_body_with(parser) {
            arguments.iter().for_each(|argument| self.visit_expr(argument));
        } else if let Ok(statements) = call.parse_body_with(syn::Block::parse_within) {
            statements.iter().for_each(|statement| self.visit_stmt(statement));
        }
    }
}

/// The names and calls of a caller's sources.
#[derive(Default)]
struct Caller {
    names: BTreeSet<String>,
    calls: BTreeSet<(String, usize)>,
    /// Operations called by their path, without a client's method.
    direct: BTreeSet<Operation>,
    /// Methods handed on by name, with any number of arguments.
    handed_on: BTreeSet<(String, String)>,
}

impl<'ast> Visit<'ast> for Caller {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        if let (true, Some(syn::Expr::Lit(literal))) = (VERBS.contains(&name.as_str()), call.args.first())
            && let syn::Lit::Str(path) = &literal.lit
            && path.value().starts_with("/v1/")
        {
            let verb = name.to_uppercase();
            self.direct.insert(format!("{verb} {}", nameless(&path.value())));
        }
        self.calls.insert((name, call.args.len()));
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let [.., owner, name] = segments.as_slice() {
            self.handed_on.insert((owner.clone(), name.clone()));
        }
        self.names.extend(segments);
        visit::visit_path(self, path);
    }

    fn visit_use_name(&mut self, name: &'ast syn::UseName) {
        self.names.insert(name.ident.to_string());
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let parser = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        if let Ok(arguments) = call.parse_body_with(parser) {
            arguments.iter().for_each(|argument| self.visit_expr(argument));
        } else if let Ok(statements) = call.parse_body_with(syn::Block::parse_within) {
            statements.iter().for_each(|statement| self.visit_stmt(statement));
        } else {
            self.visit_arms(call);
        }
    }
}

impl Caller {
    /// `select!` has arms of its own form: every call in its text counts, whatever its arguments are.
    fn visit_arms(&mut self, call: &syn::Macro) {
        let mut text = call.tokens.to_string();
        text.retain(|character| !character.is_whitespace());
        for (at, _) in text.match_indices('.') {
            let after = &text[at + 1..];
            let end = after.find(|character: char| !character.is_alphanumeric() && character != '_');
            let (name, rest) = after.split_at(end.unwrap_or(after.len()));
            if rest.starts_with('(') {
                self.calls.extend((0..6).map(|arguments| (name.to_owned(), arguments)));
            }
        }
    }
}

fn used(methods: &BTreeMap<Method, BTreeSet<Operation>>, files: &[syn::File]) -> BTreeSet<Operation> {
    let mut caller = Caller::default();
    files.iter().for_each(|file| caller.visit_file(file));
    let is_called = |(client, name, arguments): &Method| {
        caller.names.contains(client)
            && (caller.calls.contains(&(name.clone(), *arguments))
                || caller.handed_on.contains(&(client.clone(), name.clone())))
    };
    let called = methods.iter().filter(|(method, _)| is_called(method));
    called.flat_map(|(_, operations)| operations.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: &str = r#"
        impl ThingClient {
            pub fn new(client: Client) -> Self { Self(client) }
            pub async fn things(&self, query: &Query) -> Things {
                let things = self.0.get("/v1/things").query(query).json().await;
                things.extensions.remove("count").or(things.extensions.put("count"))
            }
            pub async fn keep(&self, id: Id, thing: &Thing) -> Thing {
                let path = path_of(id);
                self.0.put(&path).body(thing).json().await
            }
            pub async fn part(&self, id: Id, name: &str) -> Bytes {
                self.bytes(&format!("/v1/things/{id}/parts/{}", segment(name))).await
            }
            async fn bytes(&self, path: &str) -> Bytes { self.0.get(path).whole().await }
        }
        fn path_of(id: Id) -> String { format!("/v1/things/{id}") }
    "#;

    fn called_by(caller: &str) -> Vec<String> {
        let client = [syn::parse_file(CLIENT).unwrap()];
        let caller = [syn::parse_file(caller).unwrap()];
        used(&methods(&client), &caller).into_iter().collect()
    }

    #[test]
    fn an_operation_is_found_through_the_functions_that_make_its_path_and_its_call() {
        let all = "use api::ThingClient; async fn f(c: ThingClient) { c.things(&q).await; c.keep(i, &t).await; c.part(i, n).await; }";
        assert_eq!(
            called_by(all),
            ["GET /v1/things", "GET /v1/things/{}/parts/{}", "PUT /v1/things/{}"]
        );
    }

    #[test]
    fn what_is_not_called_is_not_found() {
        assert_eq!(
            called_by("use api::ThingClient; async fn f(c: ThingClient) { c.things(&q).await; c.keep(1).await; }"),
            ["GET /v1/things"],
            "another method of the name has another number of arguments"
        );
        assert!(called_by("async fn f(c: Other) { c.things(&q).await }").is_empty());
    }

    #[test]
    fn calls_within_macros_and_methods_that_are_handed_on_are_found() {
        let selected = "use api::ThingClient;
            async fn f(c: ThingClient) { tokio::select! { _ = c.things(&q) => {} () = later() => {} } }";
        assert_eq!(called_by(selected), ["GET /v1/things"]);
        let mut direct = Caller::default();
        let text = "async fn f(c: Client) { c.acting_for(o).get(\"/v1/things\").json().await }";
        direct.visit_file(&syn::parse_file(text).unwrap());
        assert!(direct.direct.contains("GET /v1/things"));
        let handed_on = "fn f() { g(ThingClient::things) }";
        assert_eq!(called_by(handed_on), ["GET /v1/things"]);
    }

    #[test]
    fn names_of_parameters_and_queries_do_not_matter() {
        assert_eq!(nameless("GET /v1/a/{id}/b/{}?x={y}"), "GET /v1/a/{}/b/{}");
    }
}
