//! The person at the terminal that the foot was started in.
//!
//! A thread of its own waits for what is typed, and another one writes: neither a person who takes their time nor a
//! terminal that stands still holds up the foot.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio::sync::{Mutex, mpsc};

use super::{Asker, Question, Reply};
use crate::permissions::shown::quoted;

/// Longest line that is taken for an answer, in bytes. What is longer is cut, and is none.
const MAX_LINE_BYTES: u64 = 1024;

const CHOICES: &str = "y = yes, once; a = always for exactly this; n = no; d = always no";

/// A person at a terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    said: Mutex<Said>,
    out: std::sync::mpsc::Sender<String>,
    gone: AtomicBool,
}

/// What comes from the keyboard.
#[derive(Debug)]
enum Said {
    /// Nobody listens yet: as long as nothing is asked, the keyboard is left alone.
    NotYet,
    Lines(mpsc::UnboundedReceiver<String>),
}

impl Terminal {
    /// The process's own, if standard input and standard error are terminals.
    pub(crate) fn of_process() -> Option<Self> {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return None;
        }
        let (out, to_write) = std::sync::mpsc::channel::<String>();
        let writer = std::thread::Builder::new().name("ask-write".to_owned());
        let started = writer.spawn(move || {
            for text in to_write {
                // Where nobody sees the question, nobody answers it.
                let _ = std::io::stderr().write_all(text.as_bytes());
            }
        });
        started.ok()?;
        Some(Self { said: Mutex::new(Said::NotYet), out, gone: AtomicBool::new(false) })
    }

    /// One made of channels.
    #[cfg(test)]
    pub(crate) fn over(lines: mpsc::UnboundedReceiver<String>, out: std::sync::mpsc::Sender<String>) -> Self {
        Self { said: Mutex::new(Said::Lines(lines)), out, gone: AtomicBool::new(false) }
    }

    fn say(&self, text: String) {
        let _ = self.out.send(text);
    }
}

#[async_trait]
impl Asker for Terminal {
    fn is_there(&self) -> bool {
        !self.gone.load(Ordering::Relaxed)
    }

    async fn ask(&self, question: Question) -> Option<Reply> {
        let mut said = self.said.lock().await;
        if matches!(*said, Said::NotYet) {
            if !in_foreground() {
                // To read would stop the whole process.
                return None;
            }
            *said = Said::Lines(listen());
            // What was typed before the question is no answer to it.
            let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
        }
        let Said::Lines(lines) = &mut *said else { return None };
        while lines.try_recv().is_ok() {}
        self.say(written(&question));
        let withdrawn = Withdrawn { terminal: self, answered: false };
        loop {
            let Some(line) = lines.recv().await else {
                self.gone.store(true, Ordering::Relaxed);
                return None;
            };
            match reply(&line) {
                Some(reply) => {
                    withdrawn.answered();
                    return Some(reply);
                }
                None => self.say(format!("  {CHOICES}: ")),
            }
        }
    }
}

/// Says so when a question ends without an answer.
struct Withdrawn<'a> {
    terminal: &'a Terminal,
    answered: bool,
}

impl Withdrawn<'_> {
    fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.terminal.say("\n  (no longer asked)\n".to_owned());
        }
    }
}

fn written(question: &Question) -> String {
    let process = question.process.as_deref().map(|process| format!(", process {}", quoted(process)));
    let mut text =
        format!("\n{} asks{} for {}\n", quoted(&question.subject), process.unwrap_or_default(), quoted(&question.tool));
    for line in &question.lines {
        text.push_str(&format!("  {line}\n"));
    }
    text.push_str(&format!("  ({}; within {} s)\n  {CHOICES}: ", question.because, question.seconds));
    text
}

fn reply(line: &str) -> Option<Reply> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Reply { allow: true, always: false }),
        "a" | "always" => Some(Reply { allow: true, always: true }),
        "n" | "no" => Some(Reply { allow: false, always: false }),
        "d" | "never" => Some(Reply { allow: false, always: true }),
        _ => None,
    }
}

/// Whether the terminal gives its keyboard to this process.
fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Starts to listen. The thread ends with the keyboard or with the process.
fn listen() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    let reader = std::thread::Builder::new().name("ask-read".to_owned());
    let started = reader.spawn(move || {
        let mut stdin = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = (&mut stdin).take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
            if !read.is_ok_and(|count| count > 0) || sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    if let Err(error) = started {
        tracing::warn!(%error, "nobody can be asked: a thread does not start");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question {
            subject: "eve\u{1b}[2J".to_owned(),
            process: Some("p-1".to_owned()),
            tool: "file_write".to_owned(),
            lines: vec!["write \"/w/a\"".to_owned()],
            because: "write: ask".to_owned(),
            seconds: 120,
        }
    }

    #[test]
    fn a_question_says_who_wants_what_and_steers_no_terminal() {
        let text = written(&question());
        assert!(text.contains("\"eve\\u{1b}[2J\" asks, process \"p-1\" for \"file_write\""), "{text}");
        assert!(text.contains("  write \"/w/a\"\n  (write: ask; within 120 s)\n"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[tokio::test]
    async fn what_was_typed_before_is_no_answer_and_nonsense_is_asked_again() {
        let (keyboard, lines) = mpsc::unbounded_channel();
        let (out, screen) = std::sync::mpsc::channel();
        let terminal = Terminal::over(lines, out);
        keyboard.send("a\n".to_owned()).unwrap();
        let person = async {
            while screen.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
            keyboard.send("what?\n".to_owned()).unwrap();
            keyboard.send("\n".to_owned()).unwrap();
            keyboard.send("N\n".to_owned()).unwrap();
        };
        let (reply, ()) = tokio::join!(terminal.ask(question()), person);
        assert_eq!(reply, Some(Reply { allow: false, always: false }));
        assert_eq!(screen.try_iter().count(), 2, "asked again twice");
    }

    #[tokio::test]
    async fn a_question_that_is_withdrawn_says_so_and_leaves_room_for_the_next() {
        let (keyboard, lines) = mpsc::unbounded_channel();
        let (out, screen) = std::sync::mpsc::channel();
        let terminal = Terminal::over(lines, out);
        tokio::select! {
            biased;
            _ = terminal.ask(question()) => panic!("nobody answered"),
            () = std::future::ready(()) => {}
        }
        assert!(screen.try_iter().last().unwrap().contains("no longer asked"));
        let person = async {
            while screen.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
            keyboard.send("always".to_owned()).unwrap();
        };
        let (reply, ()) = tokio::join!(terminal.ask(question()), person);
        assert_eq!(reply, Some(Reply { allow: true, always: true }));

        drop(keyboard);
        assert_eq!(terminal.ask(question()).await, None);
        assert!(!terminal.is_there(), "from now on nobody is there");
    }
}
