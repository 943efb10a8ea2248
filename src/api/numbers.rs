//! Numbers of a JSON text that no table can hold.

use super::NUMBER_MAX;

/// The first whole number of a JSON text, outside its strings, that is larger than the tables' largest.
///
/// One pass over the bytes; what is no JSON is the parser's to refuse. Signs, fractions and exponents are not
/// looked at: no field of the API is anything but a whole number.
pub(super) fn too_large(text: &[u8]) -> Option<String> {
    let (mut quoted, mut at) = (false, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' if quoted => at += 1,
            b'0'..=b'9' if !quoted => {
                let rest = text.get(at..).unwrap_or_default();
                let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let digits = String::from_utf8_lossy(rest.get(..length).unwrap_or_default());
                if !digits.parse().is_ok_and(|number: u64| number <= NUMBER_MAX) {
                    return Some(digits.chars().take(40).collect());
                }
                at += length;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::too_large;

    #[test]
    fn numbers_above_the_tables_are_found_and_texts_are_not_numbers() {
        for fine in [
            "",
            "{}",
            "9007199254740991",
            r#"{"a":"99999999999999999999"}"#,
            r#"{"a\"9":"\\"}"#,
            "[0,-1,1e9]",
        ] {
            assert_eq!(too_large(fine.as_bytes()), None, "{fine}");
        }
        for bad in [
            "9007199254740992",
            "[1,18446744073709551615]",
            r#"{"\"":99999999999999999999999}"#,
            r#"{"a":"\\","b":9223372036854775807}"#,
        ] {
            assert!(too_large(bad.as_bytes()).is_some(), "{bad}");
        }
    }
}
