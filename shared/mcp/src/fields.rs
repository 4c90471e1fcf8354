//! A JSON object taken apart one level deep: its fields can be looked at, changed and put together again, and what is in
//! them stays the text that came.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::marker::PhantomData;

use footbridge_shared::message::Raw;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// From how many fields on, doubles are found by a table instead of by looking at all the others.
const MANY: usize = 16;

/// The fields of an object, in their order. Of two with one name the last counts, as it does for every reader.
#[derive(Debug, Clone, Default)]
pub struct Fields(Vec<(String, Raw)>);

impl Fields {
    /// None.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Takes an object apart. `None`: it is no object.
    pub fn of(object: &RawValue) -> Option<Self> {
        serde_json::from_str(object.get()).ok()
    }

    /// Takes an object apart that has at most so many fields, doubles counted. `None`: it has more, or is no object.
    pub fn of_at_most(object: &RawValue, max: usize) -> Option<Self> {
        let mut json = serde_json::Deserializer::from_str(object.get());
        json.deserialize_map(Object { max }).ok()
    }

    /// A field as it came.
    pub fn get(&self, name: &str) -> Option<&Raw> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// A field as a value. `None`: it is not there, or is something else.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Sets a field: in its place, or at the end.
    pub fn set(&mut self, name: &str, value: Raw) {
        match self.0.iter_mut().find(|(field, _)| field == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Sets a field to what a value is as JSON.
    pub fn set_value<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        if let Ok(value) = to_raw_value(value) {
            self.set(name, value);
        }
    }

    /// Takes a field out.
    pub fn take(&mut self, name: &str) -> Option<Raw> {
        let place = self.0.iter().position(|(field, _)| field == name)?;
        Some(self.0.remove(place).1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The object. `None`: there are no fields.
    pub fn into_raw_unless_empty(self) -> Option<Raw> {
        (!self.is_empty()).then(|| self.to_raw())
    }

    /// The object.
    pub fn to_raw(&self) -> Raw {
        // Names and raw values can always be written.
        to_raw_value(self).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }
}

impl<S: Into<String>> FromIterator<(S, Raw)> for Fields {
    fn from_iter<I: IntoIterator<Item = (S, Raw)>>(fields: I) -> Self {
        Self(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Object { max: usize::MAX })
    }
}

/// Reads the fields of an object, and stops when there are too many.
struct Object {
    max: usize,
}

impl<'de> Visitor<'de> for Object {
    type Value = Fields;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry::<String, Raw>()? {
            if fields.len() == self.max {
                return Err(serde::de::Error::custom("it has too many fields"));
            }
            fields.push(field);
        }
        Ok(Fields(without_doubles(fields)))
    }
}

/// Of two fields with one name the last, in the place of the first. Takes linear time, whatever the names are.
fn without_doubles(mut fields: Vec<(String, Raw)>) -> Vec<(String, Raw)> {
    let double = |(place, (name, _)): (usize, &(String, Raw))| fields[..place].iter().any(|(other, _)| other == name);
    if fields.len() < MANY && !fields.iter().enumerate().any(double) {
        return fields;
    }
    let mut places: HashMap<String, usize> = HashMap::with_capacity(fields.len());
    let mut kept: Vec<(String, Raw)> = Vec::with_capacity(fields.len());
    for (name, value) in fields.drain(..) {
        match places.entry(name) {
            Entry::Occupied(place) => kept[*place.get()].1 = value,
            Entry::Vacant(place) => {
                kept.push((place.key().clone(), value));
                place.insert(kept.len() - 1);
            }
        }
    }
    kept
}

/// Reads one field of an object and passes over the others. `None`: it is not there or is something else, or this is no
/// object.
pub(crate) fn read_field<T: DeserializeOwned>(object: &RawValue, name: &str) -> Option<T> {
    struct Field<'a>(&'a str);
    impl<'de> Visitor<'de> for Field<'_> {
        type Value = Option<&'de RawValue>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some(Name(name)) = map.next_key()? {
                if name == self.0 {
                    found = Some(map.next_value()?);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(object.get());
    let found = deserializer.deserialize_map(Field(name)).ok()??;
    serde_json::from_str(found.get()).ok()
}

/// Reads the first `max` entries of a field that is an array: an entry takes more room than it has bytes, so that those
/// which nobody wants are passed over. `None`: the field is not there or is something else.
pub(crate) fn read_array(object: &RawValue, name: &str, max: usize) -> Option<Vec<Raw>> {
    let array: Raw = read_field(object, name)?;
    first_entries(array.get(), max).ok()
}

/// Reads the first `max` entries of an array, and passes over the others.
pub(crate) fn first_entries<'a, T: Deserialize<'a>>(array: &'a str, max: usize) -> serde_json::Result<Vec<T>> {
    struct First<T>(usize, PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for First<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while entries.len() < self.0
                && let Some(entry) = seq.next_element()?
            {
                entries.push(entry);
            }
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(entries)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(array);
    let entries = deserializer.deserialize_seq(First(max, PhantomData))?;
    deserializer.end()?;
    Ok(entries)
}

/// The fields of an object, in its text, doubles included. `None`: it is no object.
pub(crate) fn borrowed(object: &RawValue) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    struct All;
    impl<'de> Visitor<'de> for All {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut fields = Vec::new();
            while let Some((Name(name), value)) = map.next_entry()? {
                fields.push((name, value));
            }
            Ok(fields)
        }
    }
    serde_json::Deserializer::from_str(object.get()).deserialize_map(All).ok()
}

/// The name of a field: borrowed unless something is escaped in it.
#[derive(serde::Deserialize)]
pub(crate) struct Name<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_with_too_many_fields_is_not_taken_apart() {
        let raw: Raw = serde_json::from_str(r#"{"a":1,"b":2,"a":3}"#).unwrap();
        assert_eq!(Fields::of_at_most(&raw, 3).map(|fields| fields.iter().count()), Some(2));
        assert!(Fields::of_at_most(&raw, 2).is_none());
        let list: Raw = serde_json::from_str("[1]").unwrap();
        assert!(Fields::of_at_most(&list, 2).is_none());
    }

    #[test]
    fn what_is_not_touched_stays_as_it_came() {
        let text = r#"{"a": 1.10,"b":{"z":1,"a":9007199254740993},"c":"\u00e9"}"#;
        let raw: Raw = serde_json::from_str(text).unwrap();
        let mut fields = Fields::of(&raw).unwrap();
        fields.set_value("c", "x");
        fields.set_value("d", &[1]);
        assert_eq!(fields.take("a").unwrap().get(), "1.10");
        assert_eq!(fields.to_raw().get(), r#"{"b":{"z":1,"a":9007199254740993},"c":"x","d":[1]}"#);
        assert_eq!(fields.read::<Vec<u8>>("d"), Some(vec![1]));
    }

    #[test]
    fn of_two_fields_the_last_counts_and_no_object_is_none() {
        let raw: Raw = serde_json::from_str(r#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(Fields::of(&raw).unwrap().to_raw().get(), r#"{"a":2}"#);
        assert!(Fields::of(&to_raw_value(&[1]).unwrap()).is_none());
    }

    /// With a table the fields of this object are read in a moment; comparing each with all takes minutes.
    #[test]
    fn an_object_of_very_many_fields_is_read() {
        let fields: Vec<String> = (0..200_000).map(|n| format!(r#""{}":{n}"#, n % 150_000)).collect();
        let raw = RawValue::from_string(format!("{{{}}}", fields.join(","))).unwrap();
        let fields = Fields::of(&raw).unwrap();
        assert_eq!(fields.iter().count(), 150_000);
        assert_eq!(fields.iter().next().unwrap().1.get(), "150000");
        assert_eq!(fields.get("149999").unwrap().get(), "149999");
    }

    #[test]
    fn one_field_is_read_past_the_others() {
        let raw = RawValue::from_string(r#"{"a":[{"n\u0061me":1}],"n\u0061me":"x","name":"y"}"#.to_owned()).unwrap();
        assert_eq!(read_field::<String>(&raw, "name").as_deref(), Some("y"));
        assert_eq!(read_field::<u64>(&raw, "name"), None);
        assert_eq!(read_field::<String>(&to_raw_value(&[1]).unwrap(), "name"), None);
    }

    #[test]
    fn an_array_is_read_as_far_as_it_is_wanted() {
        let raw = RawValue::from_string(r#"{"a":[1, 2.0,{"b":3}],"c":{}}"#.to_owned()).unwrap();
        let read = |name, max| {
            let entries = read_array(&raw, name, max);
            entries.map(|entries| entries.iter().map(|entry| entry.get().to_owned()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(read("a", 2).as_deref(), Some("1 2.0"));
        assert_eq!(read("a", 9).as_deref(), Some(r#"1 2.0 {"b":3}"#));
        assert_eq!((read("c", 9), read("d", 9)), (None, None));
    }
}
