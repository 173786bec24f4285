//! The line of a job's output that says best what it does now.

/// Longer lines are no news.
const LONGEST: usize = 4096;

/// Takes output as it comes, keeps what it said last.
#[derive(Debug, Default)]
pub struct LastLine {
    unfinished: Vec<u8>,
    said: String,
    is_task: bool,
}

impl LastLine {
    /// What the job said last; of ansible the task it is at.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Takes further output in.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if matches!(byte, b'\n' | b'\r') {
                let line = String::from_utf8_lossy(&self.unfinished).into_owned();
                self.unfinished.clear();
                self.line(&plain(&line));
            } else if self.unfinished.len() < LONGEST {
                self.unfinished.push(*byte);
            }
        }
    }

    fn line(&mut self, line: &str) {
        if let Some(task) = named(line, "TASK [").or_else(|| named(line, "RUNNING HANDLER [")) {
            self.said = format!("task \"{task}\"");
            self.is_task = true;
            return;
        }
        // What single hosts answer to a task says less than the task's name.
        let answer = ["ok: [", "changed: [", "skipping: [", "included: "]
            .iter()
            .any(|start| line.starts_with(start));
        if line.is_empty() || (self.is_task && answer) || line.starts_with("PLAY") {
            return;
        }
        line.clone_into(&mut self.said);
        self.is_task = false;
    }
}

fn named<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(start)?;
    Some(&rest[..rest.rfind(']')?])
}

/// The line without the commands to a terminal that it may hold.
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' => {
                if rest.next() == Some('[') {
                    let _ = rest.by_ref().find(|c| ('@'..='~').contains(c));
                }
            }
            '\t' => text.push(' '),
            c if c.is_control() => {}
            c => text.push(c),
        }
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let mut last = LastLine::default();
        for chunk in text.as_bytes().chunks(3) {
            last.push(chunk);
        }
        last.said().to_owned()
    }

    #[test]
    fn of_ansible_the_task_is_said() {
        let text = "PLAY [Site] ****\n\nTASK [Write the page] ****\nok: [web-1]\nchanged: [web-2]\n";
        assert_eq!(said(text), "task \"Write the page\"");
        assert_eq!(
            said(&format!("{text}fatal: [web-3]: no space\n")),
            "fatal: [web-3]: no space"
        );
        assert_eq!(said("TASK [a] *\n\nPLAY RECAP ****\n"), "task \"a\"");
    }

    #[test]
    fn of_everything_else_the_last_whole_line_is_said() {
        assert_eq!(said("one\ntwo\n\nthr"), "two");
        assert_eq!(said("10%\r20%\r"), "20%");
        assert_eq!(said("\x1b[32mgreen\x1b[0m\tand plain\n"), "green and plain");
    }
}
