//! Spans that programs reported themselves, for the formats that know spans.

use mcpace_record::{EventKind, Nanos, Recording, Span};

/// One span with the time of its end.
pub(crate) struct ProgramSpan<'r> {
    pub(crate) span: &'r Span,
    pub(crate) ended: Nanos,
}

/// The spans of one program.
pub(crate) struct Program<'r> {
    /// Its name; empty where that is unknown.
    pub(crate) service: &'r str,
    /// Its spans, by their beginning.
    pub(crate) spans: Vec<ProgramSpan<'r>>,
}

impl ProgramSpan<'_> {
    /// When it began; never after its end.
    pub(crate) fn began(&self) -> Nanos {
        self.span.began.min(self.ended)
    }
}

/// The programs that reported spans, by their names.
pub(crate) fn span_programs(recording: &Recording) -> Vec<Program<'_>> {
    let mut spans: Vec<ProgramSpan<'_>> = recording
        .events()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Span(span) => Some(ProgramSpan { span, ended: event.at }),
            _ => None,
        })
        .collect();
    spans.sort_by(|a, b| (a.span.service.as_str(), a.began()).cmp(&(b.span.service.as_str(), b.began())));
    let mut programs: Vec<Program<'_>> = Vec::new();
    for span in spans {
        let service = span.span.service.as_str();
        match programs.last_mut().filter(|program| program.service == service) {
            Some(program) => program.spans.push(span),
            None => programs.push(Program { service, spans: vec![span] }),
        }
    }
    programs
}
