//! Files of spans: OTLP JSON as one message or as the lines of a collector's file exporter, and Jaeger's JSON; plain, gzip or zstd.

use std::io::Read;

use mcpace_record::Redactor;

use crate::bounded::{BoundedReader, Limit, Meter, unfold};
use crate::json::{DocumentsEnd, read_documents};
use crate::{SpanCounts, SpanError, TimedSpan, WallClock};

/// How much a file may hold.
#[derive(Clone, Copy, Debug)]
pub struct FileBounds {
    /// Spans.
    pub spans: u64,
    /// Bytes of its text, unfolded.
    pub text: u64,
    /// Bytes of the text from the end of one span to that of the next.
    pub span: u64,
}

impl FileBounds {
    /// The most that is read: well above what a day of a server's calls takes.
    pub const MOST: Self = Self { spans: 1_000_000, text: 16 << 30, span: 64 << 20 };
}

/// Reads a file and hands each span to `take`.
///
/// # Errors
/// Text in another format, a file without spans, and one that holds more than `bounds`.
pub fn read_spans(
    source: impl Read,
    redactor: &Redactor,
    clock: WallClock,
    bounds: FileBounds,
    mut take: impl FnMut(TimedSpan),
) -> Result<SpanCounts, SpanError> {
    let meter = Meter::new(bounds.text, bounds.span);
    let text = BoundedReader::new(unfold(source).map_err(SpanError::Io)?, &meter);
    let mut counts = SpanCounts::default();
    let read = read_documents(text, bounds.spans, &meter, &mut |span| {
        if counts.all() == bounds.spans {
            return false;
        }
        if let Some(timed) = span.into_timed(redactor, clock, &mut counts) {
            take(timed);
        }
        true
    });
    match (read, meter.exceeded()) {
        (_, Some(Limit::Whole)) => Err(SpanError::TooLarge(bounds.text)),
        (_, Some(Limit::Part)) => Err(SpanError::LargeSpan(bounds.span)),
        (Err(error), None) if error.is_io() => Err(SpanError::Io(error.into())),
        (Err(error), None) => Err(SpanError::NotSpans(error.to_string())),
        (Ok(read), None) => match read.end {
            DocumentsEnd::Stopped => Err(SpanError::TooMany(bounds.spans)),
            _ if !read.has_format => Err(SpanError::OtherFormat),
            _ if counts.all() == 0 => Err(SpanError::Empty),
            end => Ok(SpanCounts { cut_off: matches!(end, DocumentsEnd::CutOff), ..counts }),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use mcpace_record::{Nanos, Span, SpanKind};
    use proptest::prelude::*;

    use super::*;

    const BOUNDS: FileBounds = FileBounds { spans: 5, text: 1 << 20, span: 1 << 16 };

    fn read(file: &[u8]) -> Result<(Vec<TimedSpan>, SpanCounts), SpanError> {
        read_within(file, BOUNDS)
    }

    fn read_within(file: &[u8], bounds: FileBounds) -> Result<(Vec<TimedSpan>, SpanCounts), SpanError> {
        let mut spans = Vec::new();
        let counts = read_spans(file, &Redactor::new(1), WallClock::WALL, bounds, |span| spans.push(span))?;
        Ok((spans, counts))
    }

    fn otlp_span(name: &str) -> String {
        format!(
            r#"{{"traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174", "parentSpanId": "EEE19B7EC3C1B173",
                "name": "{name}", "kind": 3, "startTimeUnixNano": "1544712660000000000", "endTimeUnixNano": 1544712661000000000,
                "attributes": [{{"key": "http.request.method", "value": {{"stringValue": "GET"}}}},
                               {{"key": "server.port", "value": {{"intValue": "80"}}}},
                               {{"key": "list", "value": {{"arrayValue": {{"values": [{{"stringValue": "a"}}]}}}}}}],
                "events": [{{"name": "e"}}], "status": {{}}}}"#
        )
    }

    fn otlp(spans: &[String]) -> String {
        format!(
            r#"{{"resourceSpans": [{{"resource": {{"attributes": [{{"key": "service.name", "value": {{"stringValue": "weather"}}}}]}},
                "scopeSpans": [{{"scope": {{"name": "httpx"}}, "spans": [{}], "schemaUrl": ""}}]}}]}}"#,
            spans.join(",")
        )
    }

    const JAEGER: &str = r#"{"data": [{"traceID": "1a2b3c", "spans": [
        {"traceID": "1a2b3c", "spanID": "a1", "operationName": "tools/call forecast", "references": [],
         "startTime": 1544712660000000, "duration": 3000, "logs": [{"timestamp": 1, "fields": []}], "processID": "p1", "warnings": null,
         "tags": [{"key": "span.kind", "type": "string", "value": "server"}, {"key": "error", "type": "bool", "value": true}]},
        {"traceID": "1a2b3c", "spanID": "a2", "operationName": "GET",
         "references": [{"refType": "CHILD_OF", "traceID": "1a2b3c", "spanID": "a1"}],
         "startTime": 1544712660001000, "duration": 1000, "processID": "p2",
         "tags": [{"key": "span.kind", "type": "string", "value": "client"}, {"key": "server.port", "type": "int64", "value": 80},
                  {"key": "otel.library.name", "type": "string", "value": "httpx"}]}],
        "processes": {"p1": {"serviceName": "weather", "tags": []}, "p2": {"serviceName": "other"}}}], "total": 0, "errors": null}"#;

    #[test]
    fn otlp_is_read_from_one_message_and_from_lines() {
        let message = otlp(&[otlp_span("GET"), otlp_span("POST")]);
        let lines =
            [otlp(&[otlp_span("GET")]), otlp(&[otlp_span("POST")])].map(|line| line.replace('\n', "")).join("\n");
        for file in [message, lines] {
            let (spans, counts) = read(file.as_bytes()).unwrap();
            assert_eq!(counts, SpanCounts { decoded: 2, ..SpanCounts::default() });
            let (ended, span) = &spans[0];
            let attributes = [("http.request.method", "GET"), ("server.port", "80")];
            let expected = Span {
                trace: "5b8efff798038103d269b633813fc60c".to_owned(),
                span: "eee19b7ec3c1b174".to_owned(),
                parent: Some("eee19b7ec3c1b173".to_owned()),
                name: "GET".to_owned(),
                kind: SpanKind::Client,
                began: Nanos(1_544_712_660_000_000_000),
                library: "httpx".to_owned(),
                service: "weather".to_owned(),
                attributes: attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
                failed: false,
            };
            assert_eq!((*ended, span), (Nanos(1_544_712_661_000_000_000), &expected));
        }
    }

    #[test]
    fn jaegers_traces_are_read_with_the_programs_that_come_last() {
        let (spans, _) = read(JAEGER.as_bytes()).unwrap();
        let (server, client) = (&spans[0].1, &spans[1].1);
        assert_eq!((server.kind, server.service.as_str(), server.failed), (SpanKind::Server, "weather", true));
        assert_eq!(
            (client.kind, client.service.as_str(), client.library.as_str()),
            (SpanKind::Client, "other", "httpx")
        );
        assert_eq!(client.parent.as_deref(), Some("00000000000000a1"));
        assert_eq!(client.trace, "0000000000000000000000000".to_owned() + "01a2b3c");
        assert_eq!((client.began, spans[1].0), (Nanos(1_544_712_660_001_000_000), Nanos(1_544_712_660_002_000_000)));
        assert_eq!(client.attribute(&["server.port"]), Some("80"));
    }

    #[test]
    fn compressed_files_are_read() {
        let text = otlp(&[otlp_span("GET")]);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        for file in [gzip.finish().unwrap(), zstd::encode_all(text.as_bytes(), 1).unwrap()] {
            assert_eq!(read(&file).unwrap().0.len(), 1);
        }
    }

    #[test]
    fn a_file_of_something_else_is_told_from_one_without_spans() {
        for (file, expected) in [
            ("", "not a file of spans: its JSON has neither"),
            ("hello", "not a file of spans: expected value at line 1 column 1"),
            ("[1]", "not a file of spans: invalid type"),
            ("3", "not a file of spans: invalid type"),
            (r#"{"resourceMetrics": []}"#, "not a file of spans: its JSON has neither"),
            (r#"{"resourceSpans": []}"#, "a file of spans that holds none"),
            (r#"{"data": null, "errors": [{"msg": "trace not found"}]}"#, "a file of spans that holds none"),
            (r#"{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": [}]}]}]}"#, "not a file of spans: "),
        ] {
            let error = read(file.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{file}: {error}");
        }
    }

    #[test]
    fn a_file_that_ends_within_a_span_is_read_as_far_as_it_goes() {
        let text = otlp(&[otlp_span("GET"), otlp_span("POST")]);
        let (spans, counts) = read(&text.as_bytes()[..text.len() - 200]).unwrap();
        assert_eq!((spans.len(), counts.cut_off), (1, true));
    }

    #[test]
    fn bounds_end_with_an_error() {
        let many = otlp(&vec![otlp_span("GET"); 6]);
        assert!(matches!(read(many.as_bytes()), Err(SpanError::TooMany(5))));
        let held = JAEGER.replace(r#""spans": ["#, &format!(r#""spans": [{}"#, "{},".repeat(9)));
        assert!(matches!(read(held.as_bytes()), Err(SpanError::TooMany(5))));
        let five = otlp(&vec![otlp_span("GET"); 5]);
        assert_eq!(read(five.as_bytes()).unwrap().0.len(), 5);
        assert!(matches!(
            read_within(five.as_bytes(), FileBounds { text: 1_000, ..BOUNDS }),
            Err(SpanError::TooLarge(1_000))
        ));
        let long = otlp(&[otlp_span(&"x".repeat(100_000))]);
        assert!(matches!(read(long.as_bytes()), Err(SpanError::LargeSpan(_))));
        let bomb = zstd::encode_all(vec![b' '; 2 << 20].as_slice(), 1).unwrap();
        assert!(matches!(read(&bomb), Err(SpanError::LargeSpan(_) | SpanError::TooLarge(_))));
    }

    /// Names of attributes whose values may be secrets, with a way to write the secret.
    fn secret_attributes() -> impl Strategy<Value = (&'static str, String)> {
        let secret = "PLANTED[a-zA-Z0-9]{4,20}";
        prop_oneof![
            secret.prop_map(|secret| ("url.full", format!("https://h/a?b=1&api_key={secret}"))),
            secret.prop_map(|secret| ("http.url", format!("http://user:{secret}@h:80/"))),
            secret.prop_map(|secret| ("http.target", format!("/a?access_token={secret}#x"))),
            secret.prop_map(|secret| ("url.query", format!("token={secret}"))),
            secret.prop_map(|secret| ("db.query.text", format!("SELECT a FROM t WHERE b = '{secret}' AND c = 1"))),
            secret.prop_map(|secret| ("db.statement", format!("UPDATE t SET p = \"{secret}\" WHERE c = $${secret}$$"))),
            secret.prop_map(|secret| ("http.request.header.authorization", format!("Bearer {secret}"))),
            secret.prop_map(|secret| ("http.request.header.x-api-key", secret)),
            secret.prop_map(|secret| ("http.request.header.cookie", format!("sid={secret}"))),
        ]
    }

    proptest! {
        #[test]
        fn secrets_of_attributes_are_in_no_span((name, value) in secret_attributes()) {
            let value = serde_json::to_string(&value).unwrap();
            let attribute = format!(r#"[{{"key": "{name}", "value": {{"stringValue": {value}}}}}, "#);
            let tag = format!(r#"[{{"key": "{name}", "value": {value}}}, "#);
            let span = otlp_span("GET").replace(r#""attributes": ["#, &format!(r#""attributes": {attribute}"#));
            let jaeger = JAEGER.replace(r#""tags": [{"key": "span.kind""#, &format!(r#""tags": {tag}{{"key": "span.kind""#));
            for file in [otlp(&[span]), jaeger] {
                let (spans, _) = read(file.as_bytes()).unwrap();
                prop_assert!(spans[0].1.attribute(&[name]).is_some());
                prop_assert!(!format!("{spans:?}").contains("PLANTED"), "{spans:?}");
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(file in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&file);
        }

        #[test]
        fn a_damaged_file_is_read_without_panic(at in 0..1_500_usize, with in ".{0,3}") {
            for mut text in [otlp(&[otlp_span("GET")]), JAEGER.to_owned()] {
                if text.is_char_boundary(at) && at < text.len() {
                    text.replace_range(at..=at, &with);
                }
                let _ = read(text.as_bytes());
            }
        }
    }
}
