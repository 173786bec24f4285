//! The stage: people at a terminal. Every command of the story is this very binary, run as a process
//! with its own token, its output shown and its exit code checked.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use identity::Role;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader, Lines};
use tokio::process::{Child, Command};

use crate::error::CliError;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::roles::layout::Layout;

/// Who types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Operates, and may approve what others asked for.
    Ada,
    /// Approves.
    Bob,
}

/// Where the story plays.
pub struct Stage {
    pub data: PathBuf,
    program: PathBuf,
    context: PathBuf,
    ada: String,
    bob: String,
    printer: Printer,
    claims: usize,
}

/// Something that the story says is true and that is not.
pub fn untrue(what: impl Into<String>) -> CliError {
    CliError::new(Exit::Untrue, what)
}

impl Stage {
    pub fn new(layout: &Layout, printer: Printer) -> Result<Self, CliError> {
        Ok(Self {
            data: layout.data.clone(),
            program: std::env::current_exe()?,
            context: crate::context::file_in(&layout.data),
            ada: layout.token(
                "person:ada",
                &[Role::Operator, Role::Approver, Role::Admin, Role::Viewer],
            )?,
            bob: layout.token("person:bob", &[Role::Approver, Role::Viewer])?,
            printer,
            claims: 0,
        })
    }

    /// A heading of the story.
    pub fn chapter(&self, text: &str) {
        self.printer.say(format!("\n━━ {text}"));
    }

    /// A line of narration.
    pub fn tell(&self, text: impl AsRef<str>) {
        self.printer.say(format!("   {}", text.as_ref()));
    }

    /// Checks what the story says; counts it.
    pub fn check(&mut self, holds: bool, claim: impl Into<String>) -> Result<(), CliError> {
        let claim = claim.into();
        if !holds {
            return Err(untrue(format!("this should be true and is not: {claim}")));
        }
        self.claims += 1;
        self.printer.say(format!("   ✓ {claim}"));
        Ok(())
    }

    /// How many things were checked.
    pub const fn checked(&self) -> usize {
        self.claims
    }

    fn command(&self, who: Who, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let token = if who == Who::Ada { &self.ada } else { &self.bob };
        command
            .args(args)
            .env("PLATFORM_CONTEXT", &self.context)
            .env("PLATFORM_TOKEN", token)
            .kill_on_drop(true);
        command
    }

    fn show_command(&self, who: Who, args: &[&str]) {
        let name = if who == Who::Ada { "ada" } else { "bob" };
        let quoted: Vec<String> = args
            .iter()
            .map(|arg| {
                if arg.contains([' ', '"', '!']) {
                    format!("'{arg}'")
                } else {
                    (*arg).to_owned()
                }
            })
            .collect();
        self.printer.say(format!("   {name}$ platform {}", quoted.join(" ")));
    }

    /// What a command says, shown line by line as it comes.
    async fn hears(&self, child: &mut Child) -> std::io::Result<String> {
        let mut said = child.stdout.take().map(|stream| BufReader::new(stream).lines());
        let mut complained = child.stderr.take().map(|stream| BufReader::new(stream).lines());
        let mut text = Vec::new();
        while said.is_some() || complained.is_some() {
            let line = tokio::select! {
                line = next(&mut said), if said.is_some() => line?,
                line = next(&mut complained), if complained.is_some() => line?,
            };
            if let Some(line) = line {
                self.printer.say(format!("     {line}"));
                text.push(line);
            }
        }
        Ok(text.join("\n"))
    }

    /// Runs a command as a person would and shows it; its exit must be `expected`.
    pub async fn types(&self, who: Who, args: &[&str], expected: Exit) -> Result<String, CliError> {
        self.show_command(who, args);
        let mut command = self.command(who, args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let text = self.hears(&mut child).await?;
        let code = child.wait().await?.code();
        if code == Some(i32::from(expected.code())) {
            return Ok(text);
        }
        Err(untrue(format!(
            "'platform {}' ended with {code:?}, not {}",
            args.join(" "),
            expected.code()
        )))
    }

    /// Runs a command as a program would; its exit must be success.
    pub async fn reads(&self, args: &[&str]) -> Result<Value, CliError> {
        let mut all = args.to_vec();
        all.extend(["-o", "json"]);
        let output = self.command(Who::Ada, &all).output().await?;
        if !output.status.success() {
            return Err(untrue(format!(
                "'platform {}' failed: {}",
                args.join(" "),
                said(&output)
            )));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| untrue(format!("'platform {}' gave no JSON: {error}", args.join(" "))))
    }

    /// Starts an operation and gives its id.
    pub async fn starts(&self, args: &[&str]) -> Result<String, CliError> {
        let mut all = vec!["run", "--no-wait"];
        all.extend_from_slice(args);
        self.show_command(Who::Ada, &all);
        let operation = self.reads(&all).await?;
        let id = operation["id"]
            .as_str()
            .ok_or_else(|| untrue("the operation has no id"))?
            .to_owned();
        self.tell(format!("operation {id}"));
        Ok(id)
    }

    /// The node run of `node`, as the platform tells it now.
    pub async fn node(&self, operation: &str, node: &str) -> Result<Value, CliError> {
        let runs = self.reads(&["get", "node-runs", operation]).await?;
        let found = runs
            .as_array()
            .and_then(|runs| runs.iter().find(|run| run["node_id"] == node));
        found
            .cloned()
            .ok_or_else(|| untrue(format!("operation {operation} has no node {node}")))
    }

    /// Asks again until `holds`, for at most a minute.
    pub async fn until(&self, what: &str, args: &[&str], holds: impl Fn(&Value) -> bool) -> Result<Value, CliError> {
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let value = self.reads(args).await?;
            if holds(&value) {
                return Ok(value);
            }
            if tokio::time::Instant::now() > deadline {
                return Err(untrue(format!("within a minute: {what}; it reads {value:#}")));
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }

    /// The page that a host serves, if it serves one.
    pub async fn page(&self, address: &str, port: u16) -> Option<String> {
        let client = client_kit::Client::new(&format!("http://{address}:{port}"), None).ok()?;
        let bytes = client
            .get("/")
            .within(std::time::Duration::from_secs(3))
            .whole()
            .await
            .ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A path below the data directory, as an argument.
    pub fn path(&self, name: &str) -> String {
        self.data.join(name).display().to_string()
    }
}

/// The next line; at the end the stream is put away.
async fn next<R: AsyncRead + Unpin>(lines: &mut Option<Lines<BufReader<R>>>) -> std::io::Result<Option<String>> {
    let Some(open) = lines else { return Ok(None) };
    let line = open.next_line().await?;
    if line.is_none() {
        *lines = None;
    }
    Ok(line)
}

fn said(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text.trim_end().to_owned()
}

/// Reads a file of the source tree.
pub fn source(root: &Path, name: &str) -> Result<PathBuf, CliError> {
    let path = root.join(name);
    if path.exists() {
        return Ok(path);
    }
    Err(CliError::usage(format!("{} is missing", path.display()))
        .hint("run the demonstration from the repository, or name it with --source"))
}
