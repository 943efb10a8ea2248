//! A pushed head's intent: commit message, trailers, push options, the note on it.

use yard_common::intent::{Intent, Signature};
use yard_common::limits::INTENT_BYTES_MAX;
use yard_common::{ChangeId, Refusal};
use yard_git::message;

/// What an author offers, as far as texts say it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offer {
    /// The change, where the message names one.
    pub change: Option<ChangeId>,
    /// It is another change although it overlaps with an open one.
    pub new_change: bool,
    /// Declared reverts.
    pub reverts: Vec<ChangeId>,
    /// What was asked.
    pub intent: Intent,
    /// What the author should know.
    pub warnings: Vec<String>,
}

/// The push options that a submission takes.
const OPTIONS: &str = "new-change, task=, plan=, review=, tests=, agent=, model=, reason=";

fn field<'a>(intent: &'a mut Intent, name: &str) -> Option<&'a mut String> {
    Some(match name {
        "task" => &mut intent.task,
        "plan" => &mut intent.plan,
        "review" => &mut intent.review,
        "tests" => &mut intent.tests,
        "agent" => &mut intent.agent,
        "model" => &mut intent.model,
        _ => return None,
    })
}

fn change_id(text: &str) -> Result<ChangeId, Refusal> {
    ChangeId::new(text).map_err(Refusal::from)
}

/// Reads an offer from the head's message, the older messages with their authors (oldest first), the
/// note on the head and the push options. An option wins over the trailer of its name.
///
/// # Errors
/// [`Refusal::Invalid`] for an unknown option or a bad id; [`Refusal::TooLarge`] for too much text.
pub fn offer(
    head: (&Signature, &str),
    older: &[(Signature, String)],
    note: Option<&str>,
    options: &[String],
) -> Result<Offer, Refusal> {
    let message = message::read(head.1);
    let mut offer = Offer { intent: message.intent, ..Offer::default() };
    offer.change = message.change_ids.last().map(|id| change_id(id)).transpose()?;
    offer.reverts = message.reverts.iter().map(|id| change_id(id)).collect::<Result<_, _>>()?;
    offer.intent.notes = older.iter().map(|(_, text)| text.trim().to_owned()).collect();
    offer.intent.notes.extend(note.map(|text| text.trim().to_owned()));
    offer.intent.notes.retain(|text| !text.is_empty());
    let same = |a: &Signature, b: &Signature| a.email.eq_ignore_ascii_case(&b.email);
    let written = older.iter().filter(|(author, _)| !same(author, head.0));
    for author in written.map(|(author, _)| format!("{} <{}>", author.name, author.email)) {
        if !offer.intent.co_authors.contains(&author) {
            offer.intent.co_authors.push(author);
        }
    }
    offer.warnings.extend(absorbed(&message.change_ids, older));
    apply_options(&mut offer, options)?;
    check_size(&offer.intent)?;
    Ok(offer)
}

/// Commits below the head that carry Change-Ids of their own, as Gerrit's hook writes them: there each
/// would be a change, here the push is one.
fn absorbed(own: &[String], older: &[(Signature, String)]) -> Option<String> {
    let mut ids: Vec<String> = Vec::new();
    for id in older.iter().flat_map(|(_, text)| message::read(text).change_ids) {
        if !own.contains(&id) && !ids.contains(&id) {
            ids.push(id);
        }
    }
    if ids.is_empty() {
        return None;
    }
    let more = match ids.len().saturating_sub(5) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    ids.truncate(5);
    Some(format!(
        "one push is one change: this one also took in the commits of {}{more}. To offer each as a change of its \
         own, push them one by one, the oldest first: git push origin COMMIT:refs/for/main",
        ids.join(", ")
    ))
}

fn apply_options(offer: &mut Offer, options: &[String]) -> Result<(), Refusal> {
    for option in options {
        match option.split_once('=') {
            None if option == "new-change" => offer.new_change = true,
            Some(("reason", _)) => {}
            Some((name, value)) if field(&mut offer.intent, name).is_some() => {
                if let Some(place) = field(&mut offer.intent, name) {
                    value.clone_into(place);
                }
            }
            _ => {
                let why = format!("push option {option:?} is unknown: there are {OPTIONS}");
                return Err(Refusal::Invalid { why });
            }
        }
    }
    Ok(())
}

/// The `reason=` of the push options.
#[must_use]
pub fn reason(options: &[String]) -> Option<String> {
    options.iter().rev().find_map(|option| option.strip_prefix("reason=")).map(str::to_owned)
}

/// An intent may not be larger than its limit.
///
/// # Errors
/// [`Refusal::TooLarge`].
pub fn check_size(intent: &Intent) -> Result<(), Refusal> {
    let size = intent.bytes();
    if size > INTENT_BYTES_MAX {
        let what = "the intent (messages, notes and options together)".to_owned();
        return Err(Refusal::TooLarge { what, size: size as u64, limit: INTENT_BYTES_MAX as u64 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn someone(email: &str) -> Signature {
        Signature { name: "N".into(), email: email.into(), seconds: 0, offset_minutes: 0 }
    }

    #[test]
    fn the_intent_gathers_messages_note_co_authors_and_options() {
        let head = someone("a@x");
        let older = [(someone("b@x"), "first\n".to_owned()), (someone("A@x"), "second".to_owned())];
        let text = "Add it\n\nwhy\n\nTask: t1\nReverts: Cabcdefgh, Cabcdefgi\nChange-Id: Cbcdefghi";
        let options = ["task=t2".to_owned(), "new-change".to_owned(), "reason=x".to_owned()];
        let offer = offer((&head, text), &older, Some("noted\n"), &options).unwrap();
        assert_eq!(offer.change.unwrap().as_str(), "Cbcdefghi");
        assert_eq!(offer.reverts.len(), 2);
        assert!(offer.new_change);
        assert_eq!(offer.intent.task, "t2");
        assert_eq!(offer.intent.notes, ["first", "second", "noted"]);
        assert_eq!(offer.intent.co_authors, ["N <b@x>"]);
        assert_eq!(reason(&options).unwrap(), "x");
    }

    #[test]
    fn other_change_ids_below_the_head_are_told() {
        let ask = |older: &[&str]| {
            let older: Vec<_> = older.iter().map(|text| (someone("a@x"), (*text).to_owned())).collect();
            offer((&someone("a@x"), "top\n\nChange-Id: Itop12345"), &older, None, &[]).unwrap().warnings
        };
        assert!(ask(&["plain", "fix\n\nChange-Id: Itop12345"]).is_empty(), "the own id is no other");
        let told = ask(&[
            "one\n\nChange-Id: Ione12345",
            "two\n\nChange-Id: Itwo12345",
            "again\n\nChange-Id: Ione12345",
        ]);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("of Ione12345, Itwo12345. "), "{told:?}");
    }

    #[test]
    fn unknown_options_bad_ids_and_too_much_text_are_refused() {
        let head = someone("a@x");
        let ask = |text: &str, options: &[String]| offer((&head, text), &[], None, options);
        assert!(matches!(ask("t", &["tasks=x".into()]), Err(Refusal::Invalid { .. })));
        assert!(matches!(ask("t", &["new-change=1".into()]), Err(Refusal::Invalid { .. })));
        assert!(matches!(ask("t\n\nChange-Id: 1", &[]), Err(Refusal::Invalid { .. })));
        let long = format!("t\n\n{}", "x".repeat(INTENT_BYTES_MAX));
        assert!(matches!(ask(&long, &[]), Err(Refusal::TooLarge { .. })));
    }
}
