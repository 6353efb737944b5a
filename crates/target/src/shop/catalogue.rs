//! The shop's products, and a search for parts of their names.
//!
//! Design constraint: the same products in every process and on every machine, from a fixed seed and a generator of our
//! own, since a library's may change its numbers with a release and published tables name products.
//!
//! A search is a substring of the name, without regard to case. Every three letters of a name lead to the products that
//! have them, so that a search looks at the products of its rarest three letters only; a search of one or two letters
//! looks at all of them.

use std::collections::HashMap;
use std::ops::Range;

/// Products that a shop has unless told otherwise.
pub const PRODUCTS: u32 = 100_000;

const SEED: u64 = 0x6d63_7061_6365_0001;

const MAKES: [&str; 24] = [
    "Alder", "Birch", "Cedar", "Copper", "Coral", "Delta", "Ember", "Falcon", "Granite", "Harbor", "Indigo", "Juniper",
    "Kestrel", "Larch", "Maple", "Nimbus", "Onyx", "Pioneer", "Quartz", "Raven", "Summit", "Tundra", "Vertex",
    "Willow",
];
const QUALITIES: [&str; 20] = [
    "Compact",
    "Wireless",
    "Folding",
    "Ceramic",
    "Steel",
    "Bamboo",
    "Leather",
    "Cordless",
    "Portable",
    "Insulated",
    "Adjustable",
    "Digital",
    "Solar",
    "Waterproof",
    "Ergonomic",
    "Silent",
    "Vintage",
    "Modular",
    "Rugged",
    "Slim",
];
/// Kinds of products, each with its category.
const THINGS: [(&str, &str); 25] = [
    ("Headphones", "audio"),
    ("Speaker", "audio"),
    ("Microphone", "audio"),
    ("Turntable", "audio"),
    ("Keyboard", "computers"),
    ("Monitor", "computers"),
    ("Laptop", "computers"),
    ("Router", "computers"),
    ("Camera", "photo"),
    ("Tripod", "photo"),
    ("Lens", "photo"),
    ("Kettle", "kitchen"),
    ("Toaster", "kitchen"),
    ("Knife", "kitchen"),
    ("Skillet", "kitchen"),
    ("Backpack", "outdoor"),
    ("Tent", "outdoor"),
    ("Lantern", "outdoor"),
    ("Bottle", "outdoor"),
    ("Drill", "tools"),
    ("Hammer", "tools"),
    ("Sander", "tools"),
    ("Lamp", "home"),
    ("Chair", "home"),
    ("Desk", "home"),
];

/// Three bytes of a name in lower case.
type Gram = [u8; 3];

/// All products; ids count from 1.
pub(super) struct ProductCatalogue {
    /// Every product as JSON, one after another.
    json: String,
    /// Where each product's JSON ends.
    ends: Vec<u32>,
    prices: Vec<u32>,
    /// Every name in lower case, one after another, and where each ends.
    names: String,
    name_ends: Vec<u32>,
    /// For every three bytes the products that have them, in ascending order.
    grams: HashMap<Gram, Vec<u32>>,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchResult {
    pub(super) total: u32,
    /// Places of the first of them, at most as many as were asked for.
    pub(super) first: Vec<u32>,
}

impl ProductCatalogue {
    /// The first `count` products of the one and only shop.
    pub(super) fn new(count: u32) -> Self {
        let mut made = Self {
            json: String::new(),
            ends: Vec::new(),
            prices: Vec::new(),
            names: String::new(),
            name_ends: Vec::new(),
            grams: HashMap::new(),
        };
        let mut random = SplitMix(SEED);
        for id in 1..=count {
            let make = random.one_of(&MAKES);
            let quality = random.one_of(&QUALITIES);
            let (thing, category) = *random.one_of(&THINGS);
            let price = 199 + random.below_limit(99_800);
            made.add_product(id, &format!("{make} {quality} {thing} {id}"), category, price);
        }
        made
    }

    fn add_product(&mut self, id: u32, name: &str, category: &str, price_cents: u32) {
        // No word above needs escaping.
        let json = format!(r#"{{"id":{id},"name":"{name}","category":"{category}","price_cents":{price_cents}}}"#);
        self.json.push_str(&json);
        self.ends.push(to_offset(self.json.len()));
        self.prices.push(price_cents);
        let name = name.to_ascii_lowercase();
        for gram in name.as_bytes().windows(3) {
            let products = self.grams.entry([gram[0], gram[1], gram[2]]).or_default();
            if products.last() != Some(&(id - 1)) {
                products.push(id - 1);
            }
        }
        self.names.push_str(&name);
        self.name_ends.push(to_offset(self.names.len()));
    }

    /// The products whose names have `part` in them: how many, and the first `limit` by id.
    pub(super) fn search_names(&self, part: &str, limit: usize) -> SearchResult {
        let part = part.to_lowercase();
        let mut found = SearchResult { total: 0, first: Vec::new() };
        let mut look = |place: u32| {
            if self.names[text_range(&self.name_ends, place)].contains(&part) {
                found.total += 1;
                if found.first.len() < limit {
                    found.first.push(place);
                }
            }
        };
        match self.candidate_places(part.as_bytes()) {
            Some(places) => places.iter().copied().for_each(&mut look),
            None => (0..to_offset(self.prices.len())).for_each(&mut look),
        }
        found
    }

    /// The products that have the rarest three bytes of `part`; `None` where it has no three.
    fn candidate_places(&self, part: &[u8]) -> Option<&[u32]> {
        let products = |gram: &[u8]| self.grams.get(gram).map_or(&[][..], Vec::as_slice);
        part.windows(3).map(products).min_by_key(|products| products.len())
    }

    /// A product as JSON.
    pub(super) fn product_json(&self, place: u32) -> &str {
        &self.json[text_range(&self.ends, place)]
    }

    /// Price of a product in cents; `None` if no product has this id.
    pub(super) fn product_price(&self, id: u32) -> Option<u32> {
        self.prices.get(id.checked_sub(1)? as usize).copied()
    }
}

fn text_range(ends: &[u32], place: u32) -> Range<usize> {
    let place = place as usize;
    let start = place.checked_sub(1).map_or(0, |before| ends[before]);
    start as usize..ends[place] as usize
}

/// All names and texts together are some megabytes.
fn to_offset(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014.
struct SplitMix(u64);

impl SplitMix {
    fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below_limit(&mut self, limit: u32) -> u32 {
        // The high half times the limit: below it, and as even as 32 bits are.
        (((self.next_bits() >> 32) * u64::from(limit)) >> 32) as u32
    }

    fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below_limit(choices.len() as u32) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_the_same_for_ever() {
        let catalogue = ProductCatalogue::new(3);
        let all: Vec<&str> = (0..3).map(|place| catalogue.product_json(place)).collect();
        assert_eq!(
            all,
            [
                r#"{"id":1,"name":"Birch Insulated Turntable 1","category":"audio","price_cents":48670}"#,
                r#"{"id":2,"name":"Willow Vintage Chair 2","category":"home","price_cents":36620}"#,
                r#"{"id":3,"name":"Tundra Portable Lens 3","category":"photo","price_cents":59386}"#,
            ]
        );
        assert_eq!((catalogue.product_price(0), catalogue.product_price(4)), (None, None));
    }

    #[test]
    fn a_search_finds_what_looking_at_every_name_finds() {
        let catalogue = ProductCatalogue::new(2_000);
        let names: Vec<&str> =
            (0..2_000).map(|place| &catalogue.names[text_range(&catalogue.name_ends, place)]).collect();
        for part in ["Lamp", "lamp 1", "er", "r S", "Willow Slim", "777", "nothing of the kind", "É", ""] {
            let wanted: Vec<u32> = (0u32..)
                .zip(&names)
                .filter(|(_, name)| name.contains(&part.to_lowercase()))
                .map(|(place, _)| place)
                .collect();
            let found = catalogue.search_names(part, 7);
            assert_eq!(found.total as usize, wanted.len(), "{part:?}");
            assert_eq!(found.first, wanted.into_iter().take(7).collect::<Vec<_>>(), "{part:?}");
        }
    }
}
