//! What can be listed, and by which of the flags each kind can be narrowed.
//!
//! Invariant: a flag that a kind does not know is refused. A list never ignores what it was asked.

use crate::args::Get;
use crate::error::CliError;

/// A kind of things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Resources,
    ResourceTypes,
    Capabilities,
    Edges,
    Packs,
    Operations,
    NodeRuns,
    Events,
    Gates,
    Claims,
    Projections,
    Audit,
    Attempts,
    Artifacts,
    Runners,
    CommandPolicies,
}

/// What stands behind the kind on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    /// Nothing may.
    No,
    /// This may: then only that one is shown.
    May(&'static str),
    /// This must: things of this kind belong to it. It may be said by --operation where that is known.
    Must(&'static str),
}

struct Row {
    kind: Kind,
    words: &'static [&'static str],
    name: Name,
    /// Flags that narrow a list of it.
    flags: &'static [&'static str],
    /// Flags that go together with a name.
    with_name: &'static [&'static str],
}

const fn row(
    kind: Kind,
    words: &'static [&'static str],
    name: Name,
    flags: &'static [&'static str],
    with_name: &'static [&'static str],
) -> Row {
    Row {
        kind,
        words,
        name,
        flags,
        with_name,
    }
}

const ENVIRONMENT: &str = "--environment";
const SELECTOR: &str = "--selector";
const TYPE: &str = "--type";
const CAPABILITY: &str = "--capability";
const OPERATION: &str = "--operation";
const STATE: &str = "--state";
const LIMIT: &str = "--limit";
const SERVICE: &str = "--service";

/// The first word of each is its name.
const ROWS: [Row; 16] = [
    row(
        Kind::Resources,
        &["resources", "resource"],
        Name::May("RESOURCE"),
        &[ENVIRONMENT, SELECTOR, TYPE, CAPABILITY, LIMIT],
        &[],
    ),
    row(
        Kind::ResourceTypes,
        &["resource-types", "resource-type", "types", "type"],
        Name::May("TYPE"),
        &[LIMIT],
        &[],
    ),
    row(
        Kind::Capabilities,
        &[
            "capabilities",
            "capability",
            "capability-definitions",
            "capability-definition",
        ],
        Name::May("CAPABILITY"),
        &[LIMIT],
        &[],
    ),
    row(Kind::Edges, &["edges", "edge"], Name::Must("RESOURCE"), &[], &[]),
    row(Kind::Packs, &["packs", "pack"], Name::May("PACK"), &[LIMIT], &[LIMIT]),
    row(
        Kind::Operations,
        &["operations", "operation"],
        Name::May("OPERATION"),
        &[ENVIRONMENT, SELECTOR, STATE, LIMIT],
        &[],
    ),
    row(
        Kind::NodeRuns,
        &["node-runs", "node-run"],
        Name::Must("OPERATION"),
        &[OPERATION, STATE, LIMIT],
        &[STATE, LIMIT],
    ),
    row(
        Kind::Events,
        &["events", "event"],
        Name::Must("OPERATION"),
        &[OPERATION, LIMIT],
        &[LIMIT],
    ),
    row(
        Kind::Gates,
        &["gates", "gate"],
        Name::Must("OPERATION"),
        &[OPERATION],
        &[],
    ),
    row(
        Kind::Claims,
        &["claims", "claim"],
        Name::May("RESOURCE"),
        &[OPERATION, LIMIT],
        &[OPERATION, LIMIT],
    ),
    row(
        Kind::Projections,
        &["projections", "projection"],
        Name::May("PROJECTION"),
        &[],
        &[],
    ),
    row(Kind::Audit, &["audit"], Name::No, &[SERVICE, LIMIT], &[]),
    row(
        Kind::Attempts,
        &["attempts", "attempt"],
        Name::May("ATTEMPT"),
        &[OPERATION, STATE, LIMIT],
        &[],
    ),
    row(
        Kind::Artifacts,
        &["artifacts", "artifact"],
        Name::Must("ATTEMPT"),
        &[],
        &[],
    ),
    row(
        Kind::Runners,
        &["runners", "runner"],
        Name::May("RUNNER"),
        &[LIMIT],
        &[],
    ),
    row(
        Kind::CommandPolicies,
        &["command-policies", "command-policy", "policies", "policy"],
        Name::Must("POLICY"),
        &[],
        &[],
    ),
];

/// The kind that was asked for; every flag that does not belong to it is refused.
///
/// # Errors
/// Says which kinds there are, or which flags this one knows.
pub fn asked(what: &Get) -> Result<Kind, CliError> {
    let found = ROWS.iter().find(|row| row.words.contains(&what.kind.as_str()));
    let row = found.ok_or_else(|| {
        let words: Vec<&str> = ROWS.iter().map(|row| row.words[0]).collect();
        CliError::usage(format!("there is no kind {:?}", what.kind)).hint(format!("kinds: {}", words.join(", ")))
    })?;
    let word = row.words[0];
    match (row.name, &what.name) {
        (Name::No, Some(name)) => {
            return Err(CliError::usage(format!(
                "'get {word}' takes no name, and was given {name:?}"
            )));
        }
        (Name::Must(of), None) if !(row.flags.contains(&OPERATION) && what.operation.is_some()) => {
            return Err(CliError::usage(format!("which {of}? 'get {word}' wants one"))
                .hint(format!("platform get {word} {of}")));
        }
        _ => {}
    }
    let known = if what.name.is_some() { row.with_name } else { row.flags };
    let mut error = CliError::usage(format!("this does not narrow 'get {word}'"));
    for flag in given(what).into_iter().filter(|flag| !known.contains(flag)) {
        let problem = if row.flags.contains(&flag) {
            "not together with a name"
        } else {
            "not of this kind"
        };
        error = error.fault(flag, problem);
    }
    if error.faults.is_empty() {
        return Ok(row.kind);
    }
    Err(error.hint(usage(row)))
}

fn usage(row: &Row) -> String {
    let name = match row.name {
        Name::No => String::new(),
        Name::May(of) => format!(" [{of}]"),
        Name::Must(of) => format!(" {of}"),
    };
    let flags: Vec<String> = row.flags.iter().map(|flag| format!(" [{flag}]")).collect();
    format!("platform get {}{name}{}", row.words[0], flags.concat())
}

fn given(what: &Get) -> Vec<&'static str> {
    let flags = [
        (ENVIRONMENT, what.environment.is_some()),
        (SELECTOR, what.selector.is_some()),
        (TYPE, what.resource_type.is_some()),
        (CAPABILITY, what.capability.is_some()),
        (OPERATION, what.operation.is_some()),
        (STATE, what.state.is_some()),
        (LIMIT, what.limit.is_some()),
        (SERVICE, what.service.is_some()),
    ];
    flags
        .into_iter()
        .filter_map(|(flag, given)| given.then_some(flag))
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    fn get(line: &str) -> Result<Kind, CliError> {
        let words = ["platform", "get"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Command::Get(what) => asked(&what),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_flag_that_does_not_belong_to_the_kind_is_refused_by_name() {
        for (line, flag) in [
            ("runners -e prod", "--environment"),
            ("attempts -l a=b", "--selector"),
            ("packs --capability os.linux", "--capability"),
            ("claims -t compute.node", "--type"),
            ("resources --operation x", "--operation"),
            ("resources node/a -e prod", "--environment"),
            ("projections --limit 3", "--limit"),
            ("resources --state failed", "--state"),
            ("attempts --service control-plane", "--service"),
        ] {
            let error = get(line).unwrap_err();
            assert_eq!(error.faults.len(), 1, "{line}");
            assert_eq!(error.faults[0].place, flag, "{line}");
        }
    }

    #[test]
    fn what_belongs_to_something_wants_its_name() {
        for line in ["gates", "events", "node-runs", "edges", "artifacts", "policies"] {
            assert!(get(line).unwrap_err().message.starts_with("which "), "{line}");
        }
        assert_eq!(get("gates --operation x").unwrap(), Kind::Gates);
        assert_eq!(get("node-runs x --state failed").unwrap(), Kind::NodeRuns);
        assert!(get("audit x").is_err());
    }

    #[test]
    fn no_two_kinds_share_a_word() {
        let mut words: Vec<&str> = ROWS.iter().flat_map(|row| row.words).copied().collect();
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all);
        assert!(
            get("nonsense")
                .unwrap_err()
                .hint
                .unwrap()
                .contains("operations, node-runs")
        );
    }
}
