//! Somebody who types commands, with a token of their own, and what came of each.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use e2e::{Deployment, platform_program};
use serde_json::Value;

/// A bound against hanging, not a measure.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A person at a terminal that is none: their commands are run with pipes.
pub struct Person {
    context: PathBuf,
    token: String,
    /// The commands that were run, by their words.
    typed: RefCell<BTreeSet<String>>,
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Said {
    pub line: String,
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    fn of(args: &[&str], output: &Output) -> Self {
        Self {
            line: args.join(" "),
            code: output.status.code().expect("it ended by itself"),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// It must have said all of this to its reader.
    #[track_caller]
    pub fn tells(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(
                self.out.contains(part) || self.err.contains(part),
                "platform {} does not say {part:?}:\n{}\n{}",
                self.line,
                self.out,
                self.err
            );
        }
        self
    }

    /// It must not have said this.
    #[track_caller]
    pub fn keeps_to_itself(self, part: &str) -> Self {
        assert!(
            !self.out.contains(part) && !self.err.contains(part),
            "platform {} says {part:?}:\n{}\n{}",
            self.line,
            self.out,
            self.err
        );
        self
    }
}

impl Person {
    /// Somebody with these roles.
    pub fn of(deployment: &Deployment, subject: &str, roles: &[&str]) -> Self {
        let mut args = vec!["token", "mint", subject];
        for role in roles {
            args.extend(["--role", role]);
        }
        Self::with_token(deployment, deployment.platform(&args).trim())
    }

    /// Somebody who shows this token.
    pub fn with_token(deployment: &Deployment, token: &str) -> Self {
        Self {
            context: deployment.data().join("context.toml"),
            token: token.to_owned(),
            typed: RefCell::default(),
        }
    }

    /// What is shown to the services.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The command, not yet run.
    pub fn command(&self, args: &[&str]) -> Command {
        let words: Vec<&str> = args
            .iter()
            .copied()
            .take_while(|word| !word.starts_with('-'))
            .take(2)
            .collect();
        self.typed.borrow_mut().insert(words.join(" "));
        let mut command = Command::new(platform_program());
        command
            .args(args)
            .env("PLATFORM_CONTEXT", &self.context)
            .env("PLATFORM_TOKEN", &self.token)
            .stdin(std::process::Stdio::null());
        command
    }

    /// Runs a command; it must end with this code.
    #[track_caller]
    pub fn types(&self, args: &[&str], code: i32) -> Said {
        let output = self.command(args).output().expect("the program runs");
        let said = Said::of(args, &output);
        assert_eq!(
            said.code, code,
            "platform {} ended with {}, not {code}:\n{}\n{}",
            said.line, said.code, said.out, said.err
        );
        assert!(
            !said.out.contains('\x1b') && !said.err.contains('\x1b'),
            "commands to a terminal, and there is none: {said:?}"
        );
        said
    }

    /// Runs a command as a program does; it must end with this code and give one JSON value.
    #[track_caller]
    pub fn reads(&self, args: &[&str], code: i32) -> Value {
        let said = self.json(args, code);
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("platform {}: {error}:\n{}", said.line, said.out))
    }

    /// The same of a command that gives a JSON value a line, the last of which may be laid out.
    #[track_caller]
    pub fn reads_lines(&self, args: &[&str], code: i32) -> Vec<Value> {
        let said = self.json(args, code);
        let values = serde_json::Deserializer::from_str(&said.out).into_iter::<Value>();
        values
            .map(|value| value.unwrap_or_else(|error| panic!("platform {}: {error}:\n{}", said.line, said.out)))
            .collect()
    }

    #[track_caller]
    fn json(&self, args: &[&str], code: i32) -> Said {
        let mut all = args.to_vec();
        all.extend(["-o", "json"]);
        self.types(&all, code)
    }

    /// Asks again until it holds.
    #[track_caller]
    pub fn until(&self, args: &[&str], holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let value = self.reads(args, 0);
            if holds(&value) {
                return value;
            }
            assert!(Instant::now() < deadline, "platform {}: {value:#}", args.join(" "));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until plans are made from a copy of the catalog that knows the host as it is by now.
    #[track_caller]
    pub fn waits_for_the_catalog(&self) {
        let version = self.reads(&["get", "resources", "node/web-1"], 0)["version"].clone();
        let wanted = format!("node/web-1@{version}");
        self.reads(&["plan", "tried/gated", "-e", "test", "--wait-for", &wanted], 0);
    }

    /// Starts an operation and gives its id.
    #[track_caller]
    pub fn starts(&self, args: &[&str]) -> String {
        let mut all = vec!["run", "--no-wait"];
        all.extend_from_slice(args);
        let operation = self.reads(&all, 0);
        operation["id"].as_str().expect("an id").to_owned()
    }

    /// What was typed so far.
    pub fn typed(&self) -> BTreeSet<String> {
        self.typed.borrow().clone()
    }
}
