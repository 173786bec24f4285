//! The command line.
//!
//! Long because the whole interface is read here at one glance, as `platform help` shows it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Describe infrastructure once, ask for an outcome, see the plan, approve it, run it durably and keep proof.
#[derive(Debug, Parser)]
#[command(name = "platform", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Context file: where the services are (also PLATFORM_CONTEXT).
    #[arg(long, global = true, value_name = "FILE")]
    pub context: Option<PathBuf>,
    /// How to print: for people, or for programs.
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Table,
    Json,
}

/// How the commands that follow an operation end.
const WATCHED: &str = "Exit codes: 0 succeeded, 1 failed, 8 waits for a person (with --until-gate), 9 cancelled, \
    10 unresolved: what became of a node is not known, and wants 'platform resolve'; that is not waited for. \
    'platform exit-codes' lists all.";
const CANCELLED: &str = "Exit codes: 0 cancelled, 10 unresolved: what became of a node is not known, and wants \
    'platform resolve'. 'platform exit-codes' lists all.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the whole platform in this process and stay (Ctrl-C stops it and hands leases back).
    Up(Up),
    /// Run one service from a config file.
    Serve(Serve),
    /// Run the private PostgreSQL of a data directory, and write the config files of all roles.
    Database(Database),
    /// Run one runner from a config file.
    Runner(Runner),
    /// Check a config file and name every fault.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List things, or show one by name.
    Get(Get),
    /// Show one thing whole, for people.
    Describe(Describe),
    /// Register what YAML files describe: types, capability definitions, resources.
    Apply(Apply),
    /// Say that a resource was seen to provide a capability, with what showed it.
    Observe(Observe),
    /// Say that a resource was seen not to provide a capability any more.
    Withdraw(Withdraw),
    /// Edges between resources.
    #[command(subcommand)]
    Edge(EdgeCommand),
    /// Scenario packs.
    #[command(subcommand)]
    Pack(PackCommand),
    /// Preview what running a scenario would do; nothing is started.
    Plan(Ask),
    /// Plan, start and watch an operation.
    #[command(after_help = WATCHED)]
    Run(Run),
    /// Follow an operation until it ends, or is unresolved.
    #[command(after_help = WATCHED)]
    Watch(Watch),
    /// Approve what waits at a gate.
    Approve(Decide),
    /// Reject what waits at a gate.
    Reject(Decide),
    /// Carry a failed operation on: failed and unfinished nodes only.
    #[command(after_help = WATCHED)]
    Retry(Retry),
    /// Skip a node.
    Skip(NodeIntervention),
    /// Stop starting new nodes; what runs goes on.
    Pause(Intervention),
    /// Go on after a pause.
    Resume(Intervention),
    /// Cancel an operation; its running jobs are ended.
    #[command(after_help = CANCELLED)]
    Cancel(Cancel),
    /// Settle a node whose outcome is not known.
    Resolve(Resolve),
    /// Output of an attempt, or of an operation's attempts.
    Logs(Logs),
    /// Fetch an artifact of an attempt; its digest is checked.
    Artifact(Artifact),
    /// Give a runner no further work; what it has goes on.
    Drain(Drain),
    /// Make a local copy of the catalog anew from a snapshot; it is read meanwhile.
    Rebuild(Rebuild),
    /// The audit of every command, allowed or refused ('get audit' lists it).
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Proof of what happened.
    #[command(subcommand)]
    Proof(ProofCommand),
    /// Access tokens.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Secrets of the embedded store.
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Run the demonstration: three real hosts, one true operation, its unhappy twins, proof.
    Demo(Demo),
    /// What each exit code means.
    ExitCodes,
    /// The named places at which tests kill a process.
    #[command(hide = true)]
    Failpoints,
}

#[derive(Debug, Args)]
pub struct Up {
    /// Where everything is kept.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// First of three consecutive ports on 127.0.0.1; 0 takes free ones.
    #[arg(long, default_value_t = 7300)]
    pub port: u16,
    /// Do not start a runner.
    #[arg(long)]
    pub no_runner: bool,
    /// Where `ansible-playbook` is, when it is not on the PATH.
    #[arg(long, value_name = "DIR", env = "PLATFORM_ANSIBLE_DIR")]
    pub ansible: Option<PathBuf>,
}

/// One of the three services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    ResourceCatalog,
    ControlPlane,
    ExecutionPlane,
}

#[derive(Debug, Args)]
pub struct Serve {
    #[arg(value_enum)]
    pub service: Service,
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
}

#[derive(Debug, Args)]
pub struct Database {
    /// Where everything is kept.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// First of the three consecutive ports that the config files give the services; 0 takes free ones.
    /// Default: those that the data directory names already, else 7300.
    #[arg(long)]
    pub port: Option<u16>,
    /// Where `ansible-playbook` is, when it is not on the PATH.
    #[arg(long, value_name = "DIR", env = "PLATFORM_ANSIBLE_DIR")]
    pub ansible: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Runner {
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Read a config file as the role would, name every fault at once.
    Check {
        /// resource-catalog, control-plane, execution-plane or runner.
        role: String,
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct Get {
    /// resources, resource-types, capabilities, edges, packs, operations, node-runs, events, gates, claims,
    /// projections, audit, attempts, artifacts, runners, command-policies.
    pub kind: String,
    /// One of them; of claims the resource, of what belongs to something that.
    pub name: Option<String>,
    #[arg(short, long)]
    pub environment: Option<String>,
    /// Label selector: env=prod,tier!=db,zone in (a,b).
    #[arg(short = 'l', long)]
    pub selector: Option<String>,
    /// Resource type; derived types count.
    #[arg(short = 't', long = "type")]
    pub resource_type: Option<String>,
    /// Capability, with an optional version range: os.linux@>=6.1.
    #[arg(long)]
    pub capability: Option<String>,
    /// Of this operation.
    #[arg(long)]
    pub operation: Option<String>,
    /// Only those in this state.
    #[arg(long)]
    pub state: Option<String>,
    /// At most this many; without it, all of them.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Whose audit. Default: control-plane.
    #[arg(long, value_enum)]
    pub service: Option<Service>,
}

impl Service {
    pub const ALL: [Self; 3] = [Self::ResourceCatalog, Self::ControlPlane, Self::ExecutionPlane];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ResourceCatalog => "resource-catalog",
            Self::ControlPlane => "control-plane",
            Self::ExecutionPlane => "execution-plane",
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Follow the hash chain over each audit and compute every hash anew: a fact that was changed, removed, moved or
    /// slipped in shows. Exit code 1 when a chain does not hold.
    Verify {
        /// Only this service's; may be repeated.
        #[arg(long, value_enum)]
        service: Vec<Service>,
        /// A head that an earlier check told, SERVICE:SEQUENCE:HASH: a chain that was made anew, or cut off together with
        /// its head, shows. May be repeated.
        #[arg(long, value_name = "HEAD")]
        known_head: Vec<KnownHead>,
    },
}

/// Where the chain of a service ended when somebody looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownHead {
    pub service: Service,
    pub head: audit::HeadHash,
}

impl std::str::FromStr for KnownHead {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (service, rest) = text.split_once(':')?;
            let (sequence, hash) = rest.split_once(':')?;
            let head = audit::HeadHash {
                sequence: sequence.parse().ok().filter(|sequence| *sequence > 0)?,
                hash: hash.parse().ok()?,
            };
            let service = Service::ALL.into_iter().find(|one| one.as_str() == service)?;
            Some(Self { service, head })
        };
        read().ok_or_else(|| "SERVICE:SEQUENCE:HASH is expected, as 'platform audit verify' tells it".to_owned())
    }
}

#[derive(Debug, Args)]
pub struct Describe {
    /// resource, operation, gate, plan, attempt or runner.
    pub kind: String,
    /// Its name or id; of a gate OPERATION or OPERATION/GATE.
    pub name: String,
}

#[derive(Debug, Args)]
pub struct Apply {
    /// File or directory; may be repeated.
    #[arg(short, long, value_name = "PATH", required = true)]
    pub file: Vec<PathBuf>,
    /// Only if it still is at this version: a change by somebody else is not written over. For a single document.
    #[arg(long, value_name = "VERSION")]
    pub at_version: Option<i64>,
}

#[derive(Debug, Args)]
pub struct Observe {
    pub resource: String,
    pub capability: String,
    /// An attribute of the capability: NAME=VALUE.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// What showed it, for people: a command, a URL, a ticket.
    #[arg(long)]
    pub source: String,
    /// A file with what was seen; its digest goes into the evidence.
    #[arg(long, value_name = "FILE")]
    pub seen: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Withdraw {
    pub resource: String,
    pub capability: String,
}

#[derive(Debug, Subcommand)]
pub enum EdgeCommand {
    /// Add an edge.
    Add(Edge),
    /// Remove an edge.
    Remove(Edge),
}

#[derive(Debug, Args)]
pub struct Edge {
    /// The resource that carries the edge.
    pub source: String,
    /// hosted_on, member_of, part_of, connects_to, depends_on or backs_up.
    pub edge_type: String,
    pub target: String,
}

#[derive(Debug, Args)]
pub struct Artifact {
    pub attempt: String,
    /// Its name; 'platform get artifacts ATTEMPT' lists them.
    pub name: String,
    /// Where to write it. Default: standard output.
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Drain {
    /// Its name or id.
    pub runner: String,
    /// End the draining: give it work again.
    #[arg(long)]
    pub end: bool,
}

#[derive(Debug, Args)]
pub struct Rebuild {
    /// As in 'platform get projections'.
    #[arg(default_value = "catalog")]
    pub projection: String,
    /// Why, for the log.
    #[arg(short = 'm', long, default_value = "")]
    pub reason: String,
    /// Return as soon as it is asked for.
    #[arg(long)]
    pub no_wait: bool,
}

#[derive(Debug, Subcommand)]
pub enum PackCommand {
    /// Publish a pack directory. A published version never changes.
    Push { directory: PathBuf },
    /// Find every fault of a pack directory, with file and line; nothing is sent.
    Validate { directory: PathBuf },
}

#[derive(Debug, Args)]
pub struct Ask {
    /// PACK/TEMPLATE, with an optional @VERSION.
    pub scenario: String,
    #[arg(short, long)]
    pub environment: String,
    /// A parameter, NAME=VALUE; VALUE is read as JSON where it is JSON, else as text.
    #[arg(short, long = "param", value_name = "NAME=VALUE")]
    pub param: Vec<String>,
    /// Wait until the projection has this: RESOURCE@VERSION.
    #[arg(long, value_name = "RESOURCE@VERSION")]
    pub wait_for: Option<String>,
}

#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub ask: Ask,
    /// Start only the plan with this digest, as previewed.
    #[arg(long, value_name = "SHA256")]
    pub expect_plan: Option<String>,
    /// Return as soon as the operation is accepted.
    #[arg(long)]
    pub no_wait: bool,
    /// Return when the operation waits for a person (exit code 8) instead of waiting along.
    #[arg(long)]
    pub until_gate: bool,
    /// When the resources are held by another operation: refuse instead of queueing.
    #[arg(long)]
    pub no_queue: bool,
    /// Why, for the record.
    #[arg(long)]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
pub struct Watch {
    pub operation: String,
    /// Return when it waits for a person (exit code 8).
    #[arg(long)]
    pub until_gate: bool,
}

#[derive(Debug, Args)]
pub struct Decide {
    pub operation: String,
    /// The gate's node; needed when several wait.
    #[arg(long)]
    pub gate: Option<String>,
    /// The digest of what the gate covers, as shown, or its first 12 digits or more; nothing else is decided.
    #[arg(long, value_name = "SHA256")]
    pub digest: Option<String>,
    /// Whatever the gate covers by now, without being asked. An approval wants this or --digest where nobody can be asked.
    #[arg(short, long)]
    pub yes: bool,
    /// For the record.
    #[arg(short = 'm', long)]
    pub comment: Option<String>,
}

#[derive(Debug, Args)]
pub struct Intervention {
    pub operation: String,
    /// For the record.
    #[arg(short = 'm', long)]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
pub struct NodeIntervention {
    pub operation: String,
    pub node: String,
    #[arg(short = 'm', long)]
    pub reason: String,
}

#[derive(Debug, Args)]
pub struct Cancel {
    pub operation: String,
    /// Of an operation that is being cancelled and comes to no end: do not wait for what has not answered. Its
    /// outcome is then not known, and wants 'platform resolve'.
    #[arg(long)]
    pub force: bool,
    #[arg(short = 'm', long)]
    pub reason: Option<String>,
    /// Return as soon as the cancel is accepted.
    #[arg(long)]
    pub no_wait: bool,
}

#[derive(Debug, Args)]
pub struct Retry {
    pub operation: String,
    /// Only these nodes; default: everything that is not done.
    #[arg(long)]
    pub node: Vec<String>,
    /// Change a parameter first: NAME=VALUE. Makes a new plan revision; gates it touches are asked again.
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    #[arg(short = 'm', long)]
    pub reason: Option<String>,
    #[arg(long)]
    pub no_wait: bool,
    #[arg(long)]
    pub until_gate: bool,
}

#[derive(Debug, Args)]
pub struct Resolve {
    pub operation: String,
    pub node: String,
    /// What really happened.
    #[arg(long, value_enum)]
    pub outcome: Outcome,
    /// A JSON file with a list of evidence; needed to settle it as succeeded. Each one is an object: id (a UUID),
    /// type (command_check, api_check, metric_check, log_check or human_verification), capability, result
    /// (passed, failed or inconclusive), source_ref (where it was seen, for people), observed_at (RFC 3339),
    /// and, where known, name, resource_id, sha256.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    #[arg(short = 'm', long)]
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Outcome {
    Succeeded,
    Failed,
}

#[derive(Debug, Args)]
pub struct Logs {
    /// An attempt, or an operation.
    pub id: String,
    /// Only this node of the operation.
    #[arg(long)]
    pub node: Option<String>,
    /// Stay until the attempt ends.
    #[arg(short, long)]
    pub follow: bool,
}

#[derive(Debug, Subcommand)]
pub enum ProofCommand {
    /// Write the signed proof of an operation to a file.
    Export {
        operation: String,
        #[arg(short = 'f', long, value_name = "FILE")]
        file: PathBuf,
    },
    /// Check a proof offline against a public key.
    Verify {
        file: PathBuf,
        /// The platform's public key: a file, or the key as text.
        #[arg(long)]
        key: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token with the local issuer key of 'platform up'.
    Mint {
        /// Who, for example person:ada.
        subject: String,
        /// viewer, operator, approver, admin; may be repeated.
        #[arg(long, required = true)]
        role: Vec<String>,
        /// How long it holds, in hours; at most 720.
        #[arg(long, default_value_t = 12)]
        hours: u32,
        #[arg(long)]
        organization: Option<uuid::Uuid>,
    },
}

#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// Store a value read from standard input or a file under vault://MOUNT/PATH[#FIELD].
    Put {
        secret_ref: String,
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// The references that exist; never a value.
    List {
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct Demo {
    /// The directory that holds `packs` and `examples`.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub source: PathBuf,
    /// Where `ansible-playbook` is, when it is not on the PATH.
    #[arg(long, value_name = "DIR", env = "PLATFORM_ANSIBLE_DIR")]
    pub ansible: Option<PathBuf>,
    /// Keep everything under this directory instead of a temporary one.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}
