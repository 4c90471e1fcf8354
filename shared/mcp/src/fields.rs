//! A JSON object taken apart one level deep: its fields can be looked at, changed and put together again, and what is in
//! them stays the text that came.

use footbridge_shared::message::Raw;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::{RawValue, to_raw_value};

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
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::new();
                while let Some((name, value)) = map.next_entry::<String, Raw>()? {
                    fields.set(&name, value);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
