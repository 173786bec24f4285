use proptest::prelude::*;
use serde_json::json;

use super::*;

fn argv(words: &[&str]) -> CommandText {
    CommandText::Argv(words.iter().map(|word| (*word).to_owned()).collect())
}

fn policy(body: Value) -> CommandPolicy {
    CommandPolicy::parse(&body).unwrap()
}

#[test]
fn only_what_a_pattern_allows_runs() {
    let policy = policy(json!({"allow": [
        {"argv": ["systemctl", "restart", "web-*"]},
        {"argv": ["ansible-playbook", "..."]},
        {"argv": ["cat", "/etc/*", "..."]},
    ]}));
    for good in [
        &["systemctl", "restart", "web-1"][..],
        &["ansible-playbook"],
        &["ansible-playbook", "site.yml", "-v"],
        &["cat", "/etc/hosts"],
    ] {
        assert_eq!(policy.judge(&argv(good)), Ok(()), "{good:?}");
    }
    for bad in [
        &["systemctl", "stop", "web-1"][..],
        &["systemctl", "restart"],
        &["systemctl", "restart", "web-1", "db"],
        &["cat"],
        &["rm", "-rf", "/"],
        &[],
    ] {
        assert_eq!(policy.judge(&argv(bad)), Err(Violation::NoPattern), "{bad:?}");
    }
}

#[test]
fn an_empty_policy_allows_nothing() {
    assert_eq!(policy(json!({})).judge(&argv(&["true"])), Err(Violation::NoPattern));
}

#[test]
fn where_shells_are_forbidden_nothing_that_a_shell_reads_gets_through() {
    let policy = policy(json!({"allow": [{"argv": ["*", "..."]}], "forbid_shell": true}));
    assert_eq!(policy.judge(&argv(&["uptime"])), Ok(()));
    for shell in [
        CommandText::Line("uptime".into()),
        CommandText::Script,
        argv(&["sh", "-c", "uptime"]),
        argv(&["/bin/bash", "script.sh"]),
        argv(&["env", "A=1", "/usr/bin/dash"]),
        argv(&["sudo", "-n", "sh"]),
    ] {
        assert_eq!(policy.judge(&shell), Err(Violation::Shell), "{shell:?}");
    }
}

#[test]
fn a_program_given_as_a_path_must_be_at_an_allowed_place() {
    let policy = policy(json!({"allow": [{"argv": ["*", "..."]}], "paths": ["/usr/bin/*", "/opt/**/bin/*"]}));
    for good in ["/usr/bin/uptime", "/opt/a/b/bin/tool", "/opt/bin/tool", "uptime"] {
        assert_eq!(policy.judge(&argv(&[good])), Ok(()), "{good}");
    }
    for bad in [
        "/usr/bin/x/y",
        "/tmp/uptime",
        "/usr/bin/../../tmp/x",
        "./x",
        "/opt/a/bin",
    ] {
        assert_eq!(policy.judge(&argv(&[bad])), Err(Violation::Path(bad.into())), "{bad}");
    }
}

#[test]
fn a_line_counts_as_a_shell_command_for_the_patterns() {
    let policy = policy(json!({"allow": [{"argv": ["sh", "-c", "uptime*"]}]}));
    assert_eq!(policy.judge(&CommandText::Line("uptime -p".into())), Ok(()));
    assert_eq!(
        policy.judge(&CommandText::Line("rm x".into())),
        Err(Violation::NoPattern)
    );
}

#[test]
fn every_fault_of_a_policy_is_named() {
    let body = json!({"allow": [{"argv": []}, {"args": ["x"]}, {"argv": ["a", "...", "b"]}], "paths": "x", "extra": 1});
    let mut pointers: Vec<_> = CommandPolicy::parse(&body)
        .unwrap_err()
        .into_iter()
        .map(|fault| fault.pointer)
        .collect();
    pointers.sort();
    assert_eq!(
        pointers,
        ["/allow/0/argv", "/allow/1", "/allow/2/argv", "/extra", "/paths"]
    );
}

proptest! {
    #[test]
    fn a_word_matches_itself_and_any_cut_of_it(word in "[a-z*/.]{0,12}", cut in 0..12_usize) {
        let plain = word.replace('*', "x");
        prop_assert!(pattern::matches(std::slice::from_ref(&plain), &[&plain]));
        let cut = cut.min(plain.len());
        let starred = format!("{}*", &plain[..cut]);
        prop_assert!(pattern::matches(&[starred], &[&plain]));
    }
}
