//! Construction of the tree from the parser's events, within bounds.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span as Marks, Tag};

use super::{Entry, Node, NodeKind, Scalar, Span};
use crate::diag::Problem;

/// Maximum number of nodes of a document once its aliases are expanded.
const MAX_NODES: usize = 500_000;
/// Maximum nesting depth of collections; the model needs seven.
const MAX_DEPTH: usize = 32;

/// Builds the tree of the only document in `text`; `None` when the document is empty.
///
/// Mistakes that leave a usable tree (duplicate keys, tags) go to `problems` and reading goes on.
///
/// # Errors
/// A syntax error or a broken bound ends the reading.
pub(crate) fn build(text: &str, problems: &mut Vec<Problem>) -> Result<Option<Node>, Problem> {
    let mut builder = Builder::new(problems);
    for event in Parser::new_from_str(text) {
        let (event, marks) = event.map_err(|e| {
            let hint = "check indentation, quotes and brackets here and on the line before";
            let message = format!("this is not YAML: {}", e.info());
            Problem::new(at(*e.marker()), message, hint)
        })?;
        builder.take(event, &marks)?;
    }
    Ok(builder.root)
}

/// Collection that is still being read.
struct Open {
    start: Marker,
    flow: bool,
    anchor: usize,
    kind: NodeKind,
    key: Option<(Scalar, Span)>,
    seen: HashMap<String, usize>,
}

struct Builder<'a> {
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    documents: usize,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Builder<'a> {
    fn new(problems: &'a mut Vec<Problem>) -> Self {
        Self {
            open: Vec::new(),
            root: None,
            anchors: HashMap::new(),
            nodes: 0,
            documents: 0,
            problems,
        }
    }

    /// Takes the parser's next event.
    fn take(&mut self, event: Event<'_>, marks: &Marks) -> Result<(), Problem> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let hint = "keep one configuration per file; remove the `---`";
                    let message = "a second document begins here";
                    return Err(Problem::new(at(marks.start), message, hint));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), marks);
                let scalar = match style {
                    ScalarStyle::Plain => Scalar::plain(text.into_owned()),
                    _ => Scalar::quoted(text.into_owned()),
                };
                let node = Node {
                    span: span(marks),
                    kind: NodeKind::Scalar(scalar),
                };
                self.count(1, marks.start)?;
                self.finish(node, anchor)?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.as_deref(), marks);
                let kind = NodeKind::Seq {
                    items: Vec::new(),
                    incomplete: false,
                };
                self.start(marks, anchor, kind)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.as_deref(), marks);
                let kind = NodeKind::Map {
                    entries: Vec::new(),
                    doubtful: Vec::new(),
                };
                self.start(marks, anchor, kind)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(marks)?,
            Event::Alias(id) => self.alias(id, marks)?,
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize, mark: Marker) -> Result<(), Problem> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes <= MAX_NODES {
            return Ok(());
        }
        let message = format!("the file holds more than {MAX_NODES} values");
        let hint = "aliases count every time they are used; write less, or fewer of them";
        Err(Problem::new(at(mark), message, hint))
    }

    fn deep(mark: Marker) -> Problem {
        let message = format!("values nest deeper than {MAX_DEPTH} levels");
        Problem::new(
            at(mark),
            message,
            "no setting is that deep; look for unclosed brackets",
        )
    }

    fn refuse_tag(&mut self, tag: Option<&Tag>, marks: &Marks) {
        if let Some(tag) = tag {
            let message = format!("tags are not used here: `{}{}`", tag.handle, tag.suffix);
            let hint = "remove the tag; quote the value if it must be text";
            self.problems.push(Problem::new(span(marks), message, hint));
        }
    }

    fn start(&mut self, marks: &Marks, anchor: usize, kind: NodeKind) -> Result<(), Problem> {
        self.count(1, marks.start)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(Self::deep(marks.start));
        }
        let flow = marks.start.index() != marks.end.index();
        let seen = HashMap::new();
        self.open.push(Open {
            start: marks.start,
            flow,
            anchor,
            kind,
            key: None,
            seen,
        });
        Ok(())
    }

    fn end(&mut self, marks: &Marks) -> Result<(), Problem> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let span = if open.flow {
            span(&Marks {
                start: open.start,
                end: marks.end,
            })
        } else {
            Span {
                length: 0,
                ..at(open.start)
            }
        };
        self.finish(
            Node {
                span,
                kind: open.kind,
            },
            open.anchor,
        )
    }

    fn alias(&mut self, id: usize, marks: &Marks) -> Result<(), Problem> {
        let Some(mut node) = self.anchors.get(&id).cloned() else {
            let hint = "an alias can only repeat what is complete before it";
            return Err(Problem::new(
                span(marks),
                "this alias lies inside its own anchor",
                hint,
            ));
        };
        let (nodes, depth) = extent(&node);
        self.count(nodes, marks.start)?;
        if self.open.len() + depth > MAX_DEPTH {
            return Err(Self::deep(marks.start));
        }
        node.span = span(marks);
        self.finish(node, 0)
    }

    /// Puts a complete node into the collection it belongs to.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.count(
                extent(&node).0,
                Marker::new(0, node.span.line, node.span.column - 1),
            )?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.kind {
            NodeKind::Seq { items, .. } => items.push(node),
            NodeKind::Map { entries, .. } => match (open.key.take(), node.kind) {
                (None, NodeKind::Scalar(key)) => open.key = Some((key, node.span)),
                (None, _) => {
                    let hint = "a key is one word; did a `:` or a quote go missing?";
                    return Err(Problem::new(
                        node.span,
                        "a collection cannot be a key",
                        hint,
                    ));
                }
                (Some((key, key_span)), kind) => {
                    if let Some(first) = open.seen.get(&key.identity()) {
                        let message = format!("`{}` is given twice", key.text);
                        let hint =
                            format!("it is already set on line {first}; keep one of the two");
                        self.problems.push(Problem::new(key_span, message, hint));
                    } else {
                        open.seen.insert(key.identity(), key_span.line);
                        let value = Node {
                            span: node.span,
                            kind,
                        };
                        entries.push(Entry {
                            key,
                            key_span,
                            value,
                        });
                    }
                }
            },
            NodeKind::Scalar(_) => {}
        }
        Ok(())
    }
}

/// Returns the number of nodes of a tree and the nesting depth of its collections.
fn extent(node: &Node) -> (usize, usize) {
    let fold = |acc: (usize, usize), child: &Node| {
        let (nodes, depth) = extent(child);
        (acc.0 + nodes, acc.1.max(depth + 1))
    };
    match &node.kind {
        NodeKind::Scalar(_) => (1, 0),
        NodeKind::Seq { items, .. } => items.iter().fold((1, 1), fold),
        NodeKind::Map { entries, .. } => entries.iter().map(|e| &e.value).fold((1, 1), fold),
    }
}

fn at(mark: Marker) -> Span {
    Span {
        line: mark.line(),
        column: mark.col() + 1,
        length: 1,
    }
}

/// Returns the part of a node's text on its first line; a node over several lines is marked at its start.
fn span(marks: &Marks) -> Span {
    let (start, end) = (marks.start, marks.end);
    let length = if start.line() == end.line() {
        end.col().saturating_sub(start.col())
    } else {
        1
    };
    Span {
        length,
        ..at(start)
    }
}
