//! The one thread that starts children.
//!
//! PR_SET_PDEATHSIG fires when the *thread* that forked ends, not the process. Tokio's threads come
//! and go, so a child started from one of them could be killed for no reason.

use std::io;
use std::sync::mpsc;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

struct Request {
    command: Command,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// Starts commands from a thread of its own; children end when it is dropped.
pub(crate) struct Starter(mpsc::Sender<Request>);

impl Starter {
    pub(crate) fn new() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel::<Request>();
        std::thread::Builder::new()
            .name("job-starter".to_owned())
            .spawn(move || {
                while let Ok(mut request) = receiver.recv() {
                    let _context = request.runtime.enter();
                    // A caller that went away drops the child, and kill_on_drop ends it.
                    drop(request.reply.send(request.command.spawn()));
                }
            })?;
        Ok(Self(sender))
    }

    pub(crate) async fn start(&self, command: Command) -> io::Result<Child> {
        let (reply, started) = oneshot::channel();
        let request = Request {
            command,
            runtime: Handle::current(),
            reply,
        };
        self.0.send(request).map_err(|_| gone())?;
        started.await.map_err(|_| gone())?
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts jobs has ended")
}
