//! The trace that a request belongs to (W3C Trace Context, "traceparent Header").

use std::fmt;

/// Characters of a `traceparent` of version 00.
const LENGTH: usize = 55;

/// A trace, and the span in it that a request was sent from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace.
    pub trace: u128,
    /// The span that the request was sent from.
    pub span: u64,
}

impl TraceContext {
    /// Reads a `traceparent`; `None` where it is malformed, and other systems would start a trace of their own.
    #[must_use]
    pub fn parse(traceparent: &str) -> Option<Self> {
        let text = traceparent.trim();
        let is_hexadecimal = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let lengths = (version.len(), trace.len(), span.len(), flags.len());
        if lengths != (2, 32, 16, 2) || ![version, trace, span, flags].into_iter().all(is_hexadecimal) {
            return None;
        }
        // Later versions may add parts at the end.
        if version == "ff" || (version == "00" && text.len() != LENGTH) {
            return None;
        }
        let context = Self { trace: u128::from_str_radix(trace, 16).ok()?, span: u64::from_str_radix(span, 16).ok()? };
        (context.trace != 0 && context.span != 0).then_some(context)
    }

    /// The ids of a reported span, in hexadecimal digits; `None` where they are no ids.
    #[must_use]
    pub fn of_ids(trace: &str, span: &str) -> Option<Self> {
        let trace = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
        let span = u64::from_str_radix(span, 16).ok().filter(|id| *id != 0)?;
        Some(Self { trace, span })
    }
}

/// A `traceparent` of version 00 whose trace is to be kept.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-01", self.trace, self.span)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_is_read_and_written() {
        let context = TraceContext::parse(VALID).unwrap();
        assert_eq!((context.trace, context.span), (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, 0xb7ad_6b71_6920_3331));
        assert_eq!(context.to_string(), VALID);
        assert_eq!(TraceContext::parse(&VALID.replacen("00", "cc", 1).replace("-01", "-01-more")), Some(context));
        assert_eq!(TraceContext::of_ids("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"), Some(context));
    }

    #[test]
    fn malformed_texts_have_no_context() {
        let zeros = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
        let no_span = "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01";
        let upper = VALID.to_uppercase();
        let longer = format!("{VALID}-00");
        let invalid = VALID.replacen("00", "ff", 1);
        for text in ["", "00", "00-1-2-3", zeros, no_span, &upper, &longer, &invalid, "rubbish"] {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn each_context_is_read_as_it_was_written(trace in 1..=u128::MAX, span in 1..=u64::MAX) {
            let context = TraceContext { trace, span };
            prop_assert_eq!(TraceContext::parse(&context.to_string()), Some(context));
        }

        #[test]
        fn any_text_is_read_without_panic(text in ".{0,80}") {
            let _ = TraceContext::parse(&text);
        }
    }
}
