use mcpace_wire::Revision;
use proptest::prelude::*;

#[test]
fn the_order_is_that_of_the_dates() {
    let names: Vec<&str> = Revision::ALL.iter().map(|revision| revision.as_str()).collect();
    assert!(names.is_sorted());
    assert!(Revision::ALL.is_sorted());
    assert_eq!(Revision::ALL.last(), Some(&Revision::LATEST));
    assert!(Revision::LATEST_LEGACY.is_legacy() && Revision::LATEST_LEGACY < Revision::LATEST);
}

proptest! {
    #[test]
    fn comparing_is_comparing_names(a in 0_usize..5, b in 0_usize..5) {
        let (a, b) = (Revision::ALL[a], Revision::ALL[b]);
        prop_assert_eq!(a.cmp(&b), a.as_str().cmp(b.as_str()));
        prop_assert_eq!(a.as_str().parse(), Ok(a));
    }
}

#[test]
fn strangers_are_no_revision() {
    for text in ["", "2026-07-2", "2026-07-28 ", "DRAFT-2026-v1", "latest"] {
        assert!(text.parse::<Revision>().is_err(), "{text}");
    }
}

#[test]
fn initialize_is_answered_with_what_was_asked_or_the_newest_legacy_revision() {
    let all = &Revision::ALL;
    assert_eq!(Revision::negotiate("2025-03-26", all), Some(Revision::V2025_03_26));
    assert_eq!(Revision::negotiate("1999-01-01", all), Some(Revision::LATEST_LEGACY));
    assert_eq!(Revision::negotiate("2026-07-28", all), Some(Revision::LATEST_LEGACY));
    assert_eq!(Revision::negotiate("2025-03-26", &[Revision::LATEST]), None);
}
