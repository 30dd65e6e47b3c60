//! How a count is shown: declared with its field, and all that a renderer (JSON apart, which serde writes) needs to know of it.

/// A metric: a name, and a sentence that says what it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name, without the suffix that the text adds for a counter.
    pub name: &'static str,
    /// What it counts; empty where another field declares the same metric with another value of its label.
    pub help: &'static str,
}

/// A label whose values are the names of the elements below it; digits where it has none.
pub type Label = (&'static str, &'static [&'static str]);

/// What a field of [`counters!`](crate::counters!) declares about its count.
#[derive(Debug, Clone, Copy)]
pub struct Show {
    /// Its metric; of [`super::Traffic`] that of the frames, and that of the bytes.
    pub metrics: [Option<Metric>; 2],
    /// The count is in ns, and its metric in seconds.
    pub seconds: bool,
    /// The label that tells this field from others with the same metric.
    pub tag: Option<(&'static str, &'static str)>,
    /// Labels of the elements, the outermost first, where there are several.
    pub labels: &'static [Label],
    /// The heading of its column in the table of its owner.
    pub column: Option<&'static str>,
    about: &'static str,
    kept: Option<&'static str>,
    owner: Option<bool>,
}

impl Show {
    /// A count that is no metric: its reader computes another from it, or it is for the program alone.
    #[must_use]
    pub const fn no_metric() -> Show {
        Show {
            metrics: [None, None],
            seconds: false,
            tag: None,
            labels: &[],
            column: None,
            about: "",
            kept: None,
            owner: None,
        }
    }

    /// Counts of another declaration, whose fields say how they are shown.
    #[must_use]
    pub const fn nested() -> Show {
        Show::no_metric()
    }

    /// The frames of a field that has frames and bytes: shown as the field declares.
    #[must_use]
    pub const fn frames_of_owner() -> Show {
        Show {
            owner: Some(false),
            ..Show::no_metric()
        }
    }

    /// The bytes of such a field.
    #[must_use]
    pub const fn bytes_of_owner() -> Show {
        Show {
            owner: Some(true),
            ..Show::no_metric()
        }
    }

    /// The metric of this name; its help is what the field's documentation says.
    #[must_use]
    pub const fn metric(name: &'static str) -> Show {
        let metric = Metric { name, help: "" };
        Show {
            metrics: [Some(metric), None],
            ..Show::no_metric()
        }
    }

    /// With another help than the field's documentation.
    #[must_use]
    pub const fn help(self, about: &'static str) -> Show {
        Show { about, ..self }
    }

    /// The metric of the bytes beside that of the frames.
    #[must_use]
    pub const fn bytes(self, name: &'static str, help: &'static str) -> Show {
        let [frames, _] = self.metrics;
        Show {
            metrics: [frames, Some(Metric { name, help })],
            ..self
        }
    }

    /// A count in ns whose metric is in seconds.
    #[must_use]
    pub const fn seconds(self) -> Show {
        Show {
            seconds: true,
            ..self
        }
    }

    /// One of several fields with the same metric: the label that tells it apart. The first of them has the help.
    #[must_use]
    pub const fn tag(self, label: &'static str, value: &'static str) -> Show {
        Show {
            tag: Some((label, value)),
            ..self
        }
    }

    /// Several counts: the label of each level of elements.
    #[must_use]
    pub const fn by(self, labels: &'static [Label]) -> Show {
        Show { labels, ..self }
    }

    /// A column of its owner's table.
    #[must_use]
    pub const fn column(self, heading: &'static str) -> Show {
        Show {
            column: Some(heading),
            ..self
        }
    }

    /// The name by which the count is kept over a restart, where the field has another; of a nested declaration, "" where its counts are
    /// kept as if they were its owner's.
    #[must_use]
    pub const fn kept(self, name: &'static str) -> Show {
        Show {
            kept: Some(name),
            ..self
        }
    }

    /// With the documentation of the field.
    #[doc(hidden)]
    #[must_use]
    pub const fn of_field(self, documentation: &'static str) -> Show {
        let [frames, bytes] = self.metrics;
        let frames = match frames {
            Some(Metric { name, .. }) => Some(Metric {
                name,
                help: match (self.about.is_empty(), self.tag) {
                    (false, _) => self.about,
                    (true, Some(_)) => "",
                    (true, None) => documentation.trim_ascii(),
                },
            }),
            None => None,
        };
        Show {
            metrics: [frames, bytes],
            ..self
        }
    }

    /// Where the count is kept over a restart.
    #[must_use]
    pub fn path(&self, path: super::Path, field: &str) -> super::Path {
        match self.kept.unwrap_or(field) {
            "" => path,
            name => path.then(name),
        }
    }

    /// How a field of a nested declaration is shown, where its owner is shown like this.
    #[must_use]
    pub fn over(&self, field: &Show) -> Show {
        let [frames, bytes] = self.metrics;
        let Some(of_bytes) = field.owner else {
            return *field;
        };
        Show {
            metrics: [if of_bytes { bytes } else { frames }, None],
            ..*self
        }
    }

    /// Goes into a nested declaration, unless its counts are its owner's.
    pub fn enter(&self, to: &mut dyn Visit, inside: &mut dyn FnMut(&mut dyn Visit)) {
        match self.kept {
            Some("") => inside(to),
            _ => to.within(None, inside),
        }
    }

    /// The label of the elements of the outermost level, and how what is below is shown.
    pub(super) fn below(&self) -> (Option<Label>, Show) {
        let (label, labels) = match self.labels {
            [] => (None, self.labels),
            [label, below @ ..] => (Some(*label), below),
        };
        (label, Show { labels, ..*self })
    }
}

/// The value of a label: the element's name or its digit.
pub(super) fn value_of(label: Label, element: usize) -> &'static str {
    const DIGITS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];
    let (_, names) = label;
    let names = if names.is_empty() { &DIGITS } else { names };
    names.get(element).copied().unwrap_or("?")
}

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// Looks at counts, one after the other, each with its declaration.
pub trait Visit {
    /// A count; its metric is the first of the declaration.
    fn count(&mut self, how: &Show, kind: Kind, value: u64);

    /// Counts of another declaration, or of one of several elements: under this label.
    fn within(
        &mut self,
        label: Option<(&'static str, &'static str)>,
        inside: &mut dyn FnMut(&mut dyn Visit),
    );
}

/// The columns that a declaration has, with the counts below them.
#[derive(Debug, Default)]
pub struct Columns(pub Vec<(&'static str, u64)>);

impl Visit for Columns {
    fn count(&mut self, how: &Show, _: Kind, value: u64) {
        self.0.extend(how.column.map(|heading| (heading, value)));
    }

    /// They are in a table of their own.
    fn within(
        &mut self,
        _: Option<(&'static str, &'static str)>,
        _: &mut dyn FnMut(&mut dyn Visit),
    ) {
    }
}
