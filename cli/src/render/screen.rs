//! Lines at the bottom of a terminal that are written over again and again, under lines that stay.
//!
//! Invariants: only a terminal is drawn on; a frame is one write, so it does not flicker; the cursor rests
//! under the lines, so that whatever ends the program leaves a usable terminal behind.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};

use super::paint::paint;

/// What a terminal is when it does not say.
const COLUMNS: usize = 80;
const ROWS: usize = 24;

/// The lines drawn last.
#[derive(Debug)]
pub struct Screen {
    drawn: usize,
}

/// Whether standard output is a terminal that understands more than lines.
pub fn is_terminal() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Whether marks may be coloured: on a terminal, unless NO_COLOR says no.
pub fn is_coloured() -> bool {
    is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|word| word.is_empty())
}

impl Screen {
    /// The terminal, if there is one.
    pub fn of_terminal() -> Option<Self> {
        is_terminal().then_some(Self { drawn: 0 })
    }

    /// Columns and rows, as they are now.
    pub fn size() -> (usize, usize) {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let known = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        known.map_or((COLUMNS, ROWS), |size| (size.ws_col.into(), size.ws_row.into()))
    }

    /// Writes these lines over those drawn last; each is cut to the width of the terminal.
    pub fn draw(&mut self, lines: &[String]) {
        let (columns, _) = Self::size();
        write(&frame(self.drawn, lines, columns, is_coloured()));
        self.drawn = lines.len();
    }

    /// Takes the lines away, so that others can be written that stay.
    pub fn clear(&mut self) {
        if self.drawn > 0 {
            write(&frame(self.drawn, &[], COLUMNS, false));
            self.drawn = 0;
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}

fn write(frame: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(frame.as_bytes()).and_then(|()| out.flush());
}

/// What is sent to the terminal: up over the last frame, each line with the rest of its row erased, and
/// whatever is left below erased. A line too wide for the terminal is cut by it, not wrapped.
fn frame(drawn: usize, lines: &[String], columns: usize, coloured: bool) -> String {
    let mut text = String::from("\x1b[?7l");
    if drawn > 0 {
        text.push_str(&format!("\x1b[{drawn}A\r"));
    }
    for line in lines {
        let line: String = line.chars().filter(|c| !c.is_control()).take(columns).collect();
        text.push_str(if coloured { paint(&line) } else { Cow::Borrowed(&*line) }.as_ref());
        text.push_str("\x1b[K\n");
    }
    text.push_str("\x1b[J\x1b[?7h");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_drawn_over_the_one_before() {
        let first = frame(0, &["one".into(), "two".into()], 80, false);
        assert_eq!(first, "\x1b[?7lone\x1b[K\ntwo\x1b[K\n\x1b[J\x1b[?7h");
        assert!(frame(2, &["three".into()], 80, false).starts_with("\x1b[?7l\x1b[2A\rthree"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_none_carries_commands_to_it() {
        let text = frame(0, &["a\x1b[31mbcdef".into()], 6, true);
        assert_eq!(text, "\x1b[?7la[31mb\x1b[K\n\x1b[J\x1b[?7h");
    }
}
