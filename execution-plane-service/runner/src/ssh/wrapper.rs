//! What is really sent to a target: the job's commands, wrapped so that all of them carry the mark.
//!
//! The wrapper looks for a tombstone before it runs anything. A sweep first puts the tombstone there
//! and then looks for marked processes, so a command that arrives late is either seen or stays away.

use execution_plane_domain::job::{Command, ExitRule};

use super::quote;

/// The attempt's own directory on a target.
pub(crate) fn directory(mark: &str) -> String {
    format!("/tmp/.platform-{mark}")
}

/// What a sweep leaves there: no command of the attempt begins any more.
pub(crate) fn tombstone(mark: &str) -> String {
    format!("{}/ended", directory(mark))
}

/// The line for the target's login shell that runs `script` under the mark.
pub(crate) fn marked(mark: &str, script: &str, arguments: &[String]) -> String {
    let script = quote::word(script);
    let mut line = format!("exec env PLATFORM_ATTEMPT={mark} /bin/sh -c {script} platform-job");
    for argument in arguments {
        line.push(' ');
        line.push_str(&quote::word(argument));
    }
    line
}

/// Makes the attempt's directory, unless the attempt was ended already.
pub(crate) fn prelude(mark: &str) -> String {
    let directory = directory(mark);
    format!(
        "T={directory}\n\
         if [ -e \"$T/ended\" ]; then echo 'this attempt was ended before this command began' >&2; exit 254; fi\n\
         if (umask 077; mkdir -p \"$T\") 2>/dev/null && [ -O \"$T\" ] && [ -w \"$T\" ]; then TMPDIR=$T; export TMPDIR; \
         mkdir -p \"$T/artifacts\"; PLATFORM_ARTIFACTS=$T/artifacts; export PLATFORM_ARTIFACTS; fi\n"
    )
}

/// Leaves nothing behind, but for a tombstone, and for artifacts when somebody fetches them.
const FAREWELL: &str =
    "[ -e \"$T/ended\" ] || [ -n \"$(ls -A \"$T/artifacts\" 2>/dev/null)\" ] || rm -rf \"$T\"\nexit $rc\n";

/// Commands in order. The first that fails decides (and ends the list when told so), or the last
/// one's code counts, said by the author on purpose.
pub(crate) fn commands(mark: &str, commands: &[Command], rule: ExitRule, stop_on_failure: bool) -> String {
    let mut script = prelude(mark);
    script.push_str("rc=0\nwhile :; do\n");
    for (index, command) in commands.iter().enumerate() {
        let line = match command {
            Command::Argv(words) => quote::words(words),
            Command::Line(line) => line.clone(),
        };
        script.push_str(&format!("/bin/sh -c {}\nc=$?\n", quote::word(&line)));
        if commands.len() > 1 {
            let (number, count) = (index + 1, commands.len());
            script.push_str(&format!(
                "[ $c -eq 0 ] || echo \"command {number} of {count} ended with exit code $c\" >&2\n"
            ));
        }
        script.push_str(match rule {
            ExitRule::All => "[ $rc -ne 0 ] || rc=$c\n",
            ExitRule::Last => "rc=$c\n",
        });
        if stop_on_failure {
            script.push_str("[ $c -eq 0 ] || break\n");
        }
    }
    script.push_str("break\ndone\n");
    script.push_str(FAREWELL);
    script
}

/// Receives a script's text on standard input and keeps it in the attempt's directory.
pub(crate) fn receive_script(mark: &str) -> String {
    let refuse = "echo 'the attempt has no directory of its own on this target (is /tmp writable?)' >&2; exit 253";
    format!(
        "{}if [ -z \"$TMPDIR\" ]; then {refuse}; fi\n\
         cat >\"$T/script\" && chmod 0700 \"$T/script\"\n",
        prelude(mark)
    )
}

/// Runs the script that was received, with the wrapper's own arguments.
pub(crate) fn run_script(mark: &str) -> String {
    format!("{}\"$T/script\" \"$@\"\nrc=$?\n{FAREWELL}", prelude(mark))
}

/// Gives the artifact `name`, when it is a plain file.
pub(crate) fn give_artifact(mark: &str, name: &str) -> String {
    let (directory, name) = (directory(mark), quote::word(name));
    format!("f={directory}/artifacts/{name}\n[ -f \"$f\" ] && [ ! -L \"$f\" ] || exit 3\ncat -- \"$f\"\n")
}

/// Removes the attempt's directory once its artifacts were fetched.
pub(crate) fn clear_away(mark: &str) -> String {
    format!("T={0}\n[ -e \"$T/ended\" ] || rm -rf \"$T\"\n", directory(mark))
}

/// The script's text with an interpreter in its first line.
pub(crate) fn with_interpreter(text: &[u8]) -> Vec<u8> {
    if text.starts_with(b"#!") {
        text.to_vec()
    } else {
        [b"#!/bin/sh\n", text].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command as Process;

    fn run(list: &[Command], rule: ExitRule, stop: bool) -> (i32, String) {
        let mark = uuid::Uuid::now_v7().to_string();
        let line = marked(&mark, &commands(&mark, list, rule, stop), &[]);
        let output = Process::new("/bin/sh").arg("-c").arg(line).output().unwrap();
        assert!(
            !std::path::Path::new(&directory(&mark)).exists(),
            "nothing is left behind"
        );
        (
            output.status.code().unwrap(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }

    fn line(text: &str) -> Command {
        Command::Line(text.to_owned())
    }

    #[test]
    fn field_note_46_a_failed_command_before_a_good_one_fails_unless_said_otherwise() {
        let list = [line("exit 3"), line("echo last")];
        assert_eq!(run(&list, ExitRule::All, true), (3, String::new()));
        assert_eq!(run(&list, ExitRule::All, false), (3, "last\n".into()));
        assert_eq!(run(&list, ExitRule::Last, false), (0, "last\n".into()));
        assert_eq!(
            run(&[line("true"), line("exit 4")], ExitRule::All, true),
            (4, String::new())
        );
    }

    #[test]
    fn field_note_45_words_reach_the_command_byte_for_byte() {
        let words = ["printf", "%s|", "a b", "$HOME `id` \"'\\", "é\n{{ x }}", ""].map(str::to_owned);
        let (code, told) = run(&[Command::Argv(words.to_vec())], ExitRule::All, true);
        assert_eq!((code, told.as_str()), (0, "a b|$HOME `id` \"'\\|é\n{{ x }}||"));
    }

    #[test]
    fn a_command_that_arrives_after_the_end_does_not_run() {
        let mark = uuid::Uuid::now_v7().to_string();
        std::fs::create_dir(directory(&mark)).unwrap();
        std::fs::write(tombstone(&mark), "").unwrap();
        let script = marked(&mark, &commands(&mark, &[line("echo ran")], ExitRule::All, true), &[]);
        let output = Process::new("/bin/sh").arg("-c").arg(script).output().unwrap();
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(254), b"".as_slice())
        );
        std::fs::remove_dir_all(directory(&mark)).unwrap();
    }

    #[test]
    fn everything_that_a_command_starts_carries_the_mark() {
        let (_, told) = run(&[line("setsid sh -c 'echo $PLATFORM_ATTEMPT'")], ExitRule::All, true);
        assert_eq!(told.trim().len(), 36);
    }
}
