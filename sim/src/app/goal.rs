//! Reader of GOAL text, the format of LogGOPSim and ATLAHS, as their `txt2bin` takes it.
//!
//! ```text
//!   num_ranks 2
//!   rank 0 {
//!     l1: calc 100 cpu 0
//!     l2: send 8b to 1 tag 3 cpu 0 nic 0
//!     l2 requires l1                       // starts when l1 is done; irequires: when it has started
//!   }
//!   rank 1 { l1: recv 8b from 0 tag 3 }
//! ```
//! Times are nanoseconds. `;` ends a statement as a line does. Processors keep calculations apart; the overheads of messages and
//! the `nic` of LogGOPSim's model have no meaning here, and a receipt from any rank or with any tag (`-1`) is refused: which
//! message it takes would depend on the run.

use std::collections::HashMap;

use npcc_config::units::Nanos;

use super::graph::{Graph, MAX_OPERATIONS, Operation, Work};

/// Maximum number of ranks.
const MAX_RANKS: u32 = 4_096;
/// Longest calculation, and longest message: 1,000 s, and 1 TB.
const MAX_NUMBER: u64 = 1_000_000_000_000;

/// Reason why a text is not a GOAL schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    /// A line does not fit the format.
    #[error("line {line}: {what}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The problem, and what to do about it.
        what: String,
    },
    /// The operations do not fit together.
    #[error("{0}")]
    Graph(String),
}

/// A word, a number or a sign, with its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Number(u64),
    Sign(char),
    /// The end of a line, or `;`.
    End,
}

fn error<T>(line: usize, what: impl Into<String>) -> Result<T, GoalError> {
    Err(GoalError::Line {
        line,
        what: what.into(),
    })
}

/// Returns the tokens of a text with their lines, comments left out.
fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, GoalError> {
    let mut tokens = Vec::new();
    let mut in_comment = None;
    for (line, text) in (1..).zip(text.lines()) {
        let mut rest = text;
        loop {
            if in_comment.is_some() {
                let Some((_, after)) = rest.split_once("*/") else {
                    break;
                };
                (in_comment, rest) = (None, after);
            }
            rest = rest.trim_start();
            if rest.starts_with("/*") {
                in_comment = Some(line);
                rest = &rest[2..];
                continue;
            }
            let Some(first) = rest.chars().next().filter(|_| !rest.starts_with("//")) else {
                break;
            };
            let is_part = |other: char| match first {
                '0'..='9' => other.is_ascii_digit(),
                _ => other.is_ascii_alphanumeric() || other == '_',
            };
            let len = match first {
                '0'..='9' | 'a'..='z' | 'A'..='Z' => {
                    rest.find(|other| !is_part(other)).unwrap_or(rest.len())
                }
                _ => first.len_utf8(),
            };
            let (token, after) = rest.split_at(len);
            rest = after;
            tokens.push((
                line,
                match first {
                    '0'..='9' => match token.parse() {
                        Ok(number) if number <= MAX_NUMBER => Token::Number(number),
                        _ => return error(line, format!("{token} is more than {MAX_NUMBER}")),
                    },
                    'a'..='z' | 'A'..='Z' => Token::Word(token),
                    ';' => Token::End,
                    '{' | '}' | ':' | '-' => Token::Sign(first),
                    other => return error(line, format!("`{other}` has no meaning in GOAL")),
                },
            ));
        }
        tokens.push((line, Token::End));
    }
    match in_comment {
        Some(line) => error(line, "the comment has no end; write */"),
        None => Ok(tokens),
    }
}

/// A reader at a place in the tokens.
struct Reader<'a> {
    tokens: &'a [(usize, Token<'a>)],
    line: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.first().map(|(_, token)| *token)
    }

    fn take(&mut self) -> Option<Token<'a>> {
        let ((line, token), rest) = self.tokens.split_first()?;
        self.tokens = rest;
        self.line = *line;
        Some(*token)
    }

    /// Takes the next token if it is this one.
    fn takes(&mut self, token: Token) -> bool {
        let is_next = self.peek() == Some(token);
        if is_next {
            self.take();
        }
        is_next
    }

    fn fail<T>(&self, wanted: &str, found: Option<Token>) -> Result<T, GoalError> {
        let found = match found {
            Some(Token::Word(word)) => format!("`{word}`"),
            Some(Token::Number(number)) => format!("`{number}`"),
            Some(Token::Sign(sign)) => format!("`{sign}`"),
            Some(Token::End) => "the end of the line".to_owned(),
            None => "the end of the text".to_owned(),
        };
        error(self.line, format!("{found} where {wanted} is expected"))
    }

    fn number(&mut self, of: &str, most: u64) -> Result<u64, GoalError> {
        match self.take() {
            Some(Token::Number(number)) if number <= most => Ok(number),
            Some(Token::Number(number)) => {
                error(self.line, format!("{of} {number} is more than {most}"))
            }
            Some(Token::Sign('-')) => error(
                self.line,
                format!("{of} -1, any, is not supported: name the one that the run had"),
            ),
            found => self.fail(of, found),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), GoalError> {
        match self.take() {
            Some(Token::Word(found)) if found == word => Ok(()),
            found => self.fail(&format!("`{word}`"), found),
        }
    }

    fn small(&mut self, of: &str) -> Result<u32, GoalError> {
        Ok(crate::num::small(self.number(of, u32::MAX.into())?))
    }

    /// Reads `BYTESb to|from RANK [tag TAG]`; the rest of the line is LogGOPSim's.
    fn message(&mut self, way: &str) -> Result<(u64, u32, u32), GoalError> {
        let bytes = self.number("the bytes", MAX_NUMBER)?;
        self.word("b")?;
        self.word(way)?;
        let peer = self.small("the rank")?;
        let tag = if self.takes(Token::Word("tag")) {
            self.small("the tag")?
        } else {
            0
        };
        Ok((bytes, peer, tag))
    }

    /// Reads `cpu N` and `nic N`, as far as they are there, and returns the processor.
    fn places(&mut self) -> Result<u8, GoalError> {
        let mut cpu = 0;
        loop {
            if self.takes(Token::Word("cpu")) {
                cpu = self.number("the processor", u8::MAX.into())?.to_le_bytes()[0];
            } else if self.takes(Token::Word("nic")) {
                self.number("the network card", u8::MAX.into())?;
            } else {
                return Ok(cpu);
            }
        }
    }

    fn work(&mut self) -> Result<Work, GoalError> {
        let work = match self.take() {
            Some(Token::Word("calc")) => {
                let time = Nanos(self.number("the time", MAX_NUMBER)?);
                let cpu = self.places()?;
                return Ok(Work::Calc { time, cpu });
            }
            Some(Token::Word("send")) => {
                let (bytes, to, tag) = self.message("to")?;
                Work::Send { bytes, to, tag }
            }
            Some(Token::Word("recv")) => {
                let (bytes, from, tag) = self.message("from")?;
                Work::Receive { bytes, from, tag }
            }
            found => return self.fail("calc, send or recv", found),
        };
        self.places()?;
        Ok(work)
    }

    /// Reads the statements of a rank up to its `}`.
    fn rank(&mut self, room: usize) -> Result<Vec<Operation>, GoalError> {
        let mut operations: Vec<Operation> = Vec::new();
        let mut labels: HashMap<&str, u32> = HashMap::new();
        // Dependencies may be written before what they name.
        let mut edges: Vec<(usize, &str, &str, bool)> = Vec::new();
        loop {
            match self.peek() {
                Some(Token::End) => {
                    self.take();
                    continue;
                }
                Some(Token::Sign('}')) => {
                    self.take();
                    break;
                }
                Some(Token::Word("calc" | "send" | "recv")) => {
                    operations.push(Operation::new(self.work()?, Vec::new()));
                }
                Some(Token::Word(label)) => {
                    self.take();
                    match self.take() {
                        Some(Token::Sign(':')) => {
                            let at = crate::num::small(operations.len() as u64);
                            if labels.insert(label, at).is_some() {
                                return error(self.line, format!("`{label}` is there twice"));
                            }
                            operations.push(Operation::new(self.work()?, Vec::new()));
                        }
                        Some(Token::Word(how @ ("requires" | "irequires"))) => {
                            let Some(Token::Word(other)) = self.peek() else {
                                let found = self.peek();
                                return self.fail("a label", found);
                            };
                            self.take();
                            edges.push((self.line, label, other, how == "requires"));
                        }
                        found => return self.fail("`:`, requires or irequires", found),
                    }
                }
                found => {
                    self.take();
                    return self.fail("a statement or `}`", found);
                }
            }
            if !matches!(self.peek(), Some(Token::End | Token::Sign('}'))) {
                let found = self.take();
                return self.fail("the end of the line", found);
            }
            if operations.len() + edges.len() > room {
                return error(
                    self.line,
                    format!("more than {MAX_OPERATIONS} operations and dependencies"),
                );
            }
        }
        for (line, label, other, done) in edges {
            let place = |label: &str| match labels.get(label) {
                Some(place) => Ok(*place),
                None => error(line, format!("this rank has no operation `{label}`")),
            };
            let (at, other) = (place(label)?, place(other)?);
            let operation = &mut operations[at as usize];
            let list = if done {
                &mut operation.after
            } else {
                &mut operation.with
            };
            list.push(other);
        }
        Ok(operations)
    }
}

/// Reads a GOAL schedule.
///
/// # Errors
/// [`GoalError`], with the line.
pub fn read(text: &str) -> Result<Graph, GoalError> {
    let tokens = tokens(text)?;
    let mut reader = Reader {
        tokens: &tokens,
        line: 1,
    };
    while reader.takes(Token::End) {}
    reader.word("num_ranks")?;
    let count = reader.number("the number of ranks", MAX_RANKS.into())?;
    let mut ranks: Vec<Option<Vec<Operation>>> = (0..count).map(|_| None).collect();
    let mut room = MAX_OPERATIONS;
    loop {
        while reader.takes(Token::End) {}
        if reader.peek().is_none() {
            break;
        }
        reader.word("rank")?;
        let number = reader.small("the rank")?;
        let line = reader.line;
        match reader.take() {
            Some(Token::Sign('{')) => {}
            found => return reader.fail("`{`", found),
        }
        let operations = reader.rank(room)?;
        let edges = operations
            .iter()
            .map(|one| one.after.len() + one.with.len());
        room = room.saturating_sub(operations.len() + edges.sum::<usize>());
        match ranks.get_mut(number as usize) {
            Some(rank @ None) => *rank = Some(operations),
            Some(Some(_)) => return error(line, format!("rank {number} is there twice")),
            None => return error(line, format!("rank {number} of {count}: count from 0")),
        }
    }
    let ranks = ranks.into_iter().map(Option::unwrap_or_default).collect();
    Graph::new(ranks).map_err(GoalError::Graph)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;

    const PING: &str = "// Two ranks.
num_ranks 2

rank 0 {
l1: calc 100 cpu 1
l2: send 2000b to 1 tag 3 cpu 0 nic 0
l2 requires l1
/* The answer
   comes later. */ recv 8b from 1
}
rank 1 { a_1: recv 2000b from 0 tag 3; b: send 8b to 0; b irequires a_1 }
";

    #[test]
    fn the_published_form_is_read() {
        let graph = read(PING).unwrap();
        let [first, second] = graph.ranks() else {
            panic!("two ranks")
        };
        let (time, cpu) = (Nanos(100), 1);
        assert_eq!(first[0].work, Work::Calc { time, cpu });
        assert_eq!((first[1].after.as_slice(), first.len()), (&[0][..], 3));
        assert_eq!(second[1].with, [0]);
        let windows = PING.replace('\n', "\r\n");
        assert_eq!(read(&windows).unwrap(), graph);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (from, to, said) in [
            (
                "num_ranks 2",
                "ranks 2",
                "line 2: `ranks` where `num_ranks`",
            ),
            (
                "num_ranks 2",
                "num_ranks 9999",
                "line 2: the number of ranks 9999 is more",
            ),
            ("num_ranks 2", "num_ranks 1", "line 11: rank 1 of 1"),
            ("rank 1 {", "rank 0 {", "line 11: rank 0 is there twice"),
            ("rank 1 {", "rank 1", "line 11: `a_1` where `{`"),
            (
                "l2 requires l1",
                "l2 requires l9",
                "line 7: this rank has no operation `l9`",
            ),
            ("l2 requires l1", "l2 needs l1", "line 7: `needs` where"),
            (
                "l2 requires l1",
                "l1: calc 1",
                "line 7: `l1` is there twice",
            ),
            (
                "l2 requires l1",
                "l2 requires",
                "line 7: the end of the line where a label",
            ),
            (
                "l1: calc 100 cpu 1",
                "l1: calc cpu 1",
                "line 5: `cpu` where the time",
            ),
            (
                "l1: calc 100 cpu 1",
                "l1: calc 100 cpu 256",
                "line 5: the processor 256",
            ),
            (
                "l1: calc 100 cpu 1",
                "l1: calc 100 l9: calc 1",
                "line 5: `l9` where the end",
            ),
            (
                "l1: calc 100",
                "l1: calc 99999999999999999999",
                "line 5: 99999999999999999999 is more",
            ),
            ("2000b to", "2000 to", "line 6: `to` where `b`"),
            ("2000b to", "2000b from", "line 6: `from` where `to`"),
            ("2000b to 1", "2000b to 7", "rank 7"),
            (
                "recv 8b from 1",
                "recv 8b from -1",
                "line 9: the rank -1, any",
            ),
            (
                "irequires a_1 }",
                "irequires a_1",
                "line 11: the end of the text where",
            ),
            ("l1: calc", "l1: \u{e9}", "line 5: `\u{e9}` has no meaning"),
            ("*/", "", "line 8: the comment has no end"),
            ("send 8b to 0", "calc 8", "receives 1"),
        ] {
            let error = read(&PING.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(said), "{error} has no {said}");
        }
    }

    /// Writes a graph as text.
    fn write(graph: &Graph) -> String {
        let mut text = format!("num_ranks {}\n", graph.ranks().len());
        for (rank, operations) in graph.ranks().iter().enumerate() {
            let _ = writeln!(text, "rank {rank} {{");
            for (at, operation) in operations.iter().enumerate() {
                let _ = match operation.work {
                    Work::Calc { time, cpu } => writeln!(text, "l{at}: calc {} cpu {cpu}", time.0),
                    Work::Send { bytes, to, tag } => {
                        writeln!(text, "l{at}: send {bytes}b to {to} tag {tag}")
                    }
                    Work::Receive { bytes, from, tag } => {
                        writeln!(text, "l{at}: recv {bytes}b from {from} tag {tag}")
                    }
                };
                for other in &operation.after {
                    let _ = writeln!(text, "l{at} requires l{other}");
                }
                for other in &operation.with {
                    let _ = writeln!(text, "l{at} irequires l{other}");
                }
            }
            text.push_str("}\n");
        }
        text
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(messages in prop::collection::vec((0u32..4, 1u32..4, 0..=MAX_NUMBER, 0u32..3), 0..40)) {
            let mut ranks: Vec<Vec<Operation>> = vec![Vec::new(); 4];
            for (from, turn, bytes, tag) in messages {
                let to = (from + turn) % 4;
                for (rank, work) in [(from, Work::Send { bytes, to, tag }), (to, Work::Receive { bytes, from, tag })] {
                    let operations = &mut ranks[rank as usize];
                    let last = u32::try_from(operations.len()).unwrap().checked_sub(1);
                    operations.push(Operation { work, after: last.into_iter().collect(), with: last.into_iter().collect() });
                }
            }
            let graph = Graph::new(ranks).unwrap();
            prop_assert_eq!(read(&write(&graph)), Ok(graph));
        }

        #[test]
        fn no_text_stops_the_reader(cut in 0usize..400, words in prop::collection::vec("(num_ranks|rank|calc|send|recv|to|from|tag|requires|l1|b|:|\\{|\\}|;|\n|/\\*|-1|0|1|2)", 0..20)) {
            let cut = cut.min(PING.len());
            let text = PING[..cut].to_owned() + &words.join(" ") + &PING[cut..];
            let _ = read(&text);
        }
    }
}
