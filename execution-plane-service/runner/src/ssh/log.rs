//! What the OpenSSH client says about a connection in its own log (at level DEBUG1).

/// How a remote command ended, as far as the client knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RemoteEnd {
    /// It never began: no connection, unknown host key, no login.
    Unreachable(String),
    /// The command was sent and its exit status came back.
    Exited(i32),
    /// A signal ended it.
    Signalled,
    /// The command was sent, and then the connection broke: what came of it is not known.
    Broken(String),
}

/// Reads the whole log of one client.
pub(crate) fn read(log: &str) -> RemoteEnd {
    let said = |line: &&str| !line.starts_with("debug") && !line.trim().is_empty();
    let last_word = || {
        let words: Vec<&str> = log
            .lines()
            .filter(said)
            .filter(|line| !line.starts_with("Authenticated to"))
            .map(str::trim)
            .collect();
        words
            .last()
            .copied()
            .unwrap_or("the ssh client gave no reason")
            .to_owned()
    };
    let status = log
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("debug1: Exit status "));
    if log.contains("rtype exit-signal") {
        return RemoteEnd::Signalled;
    }
    match status.and_then(|text| text.trim().parse::<i32>().ok()) {
        Some(code) if code >= 0 && log.contains("rtype exit-status") => RemoteEnd::Exited(code),
        _ if log.contains("debug1: Sending command: ") => RemoteEnd::Broken(last_word()),
        _ => RemoteEnd::Unreachable(last_word()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACHED: &str = "Authenticated to h ([h]:22) using \"publickey\".\ndebug1: Sending command: x\n";

    #[test]
    fn only_the_clients_own_words_decide() {
        let exited = format!(
            "{REACHED}debug1: client_input_channel_req: channel 0 rtype exit-status reply 0\nTransferred: …\ndebug1: Exit status 255\n"
        );
        assert_eq!(read(&exited), RemoteEnd::Exited(255));
        let killed = format!(
            "{REACHED}debug1: client_input_channel_req: channel 0 rtype exit-signal reply 0\ndebug1: Exit status -1\n"
        );
        assert_eq!(read(&killed), RemoteEnd::Signalled);
        let broken = format!("{REACHED}Connection to h closed by remote host.\ndebug1: Exit status -1\n");
        assert_eq!(
            read(&broken),
            RemoteEnd::Broken("Connection to h closed by remote host.".into())
        );
        let unknown = "debug1: x\nNo ED25519 host key is known for web.\nHost key verification failed.\n";
        assert_eq!(
            read(unknown),
            RemoteEnd::Unreachable("Host key verification failed.".into())
        );
    }
}
