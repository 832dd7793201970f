//! Words that say the same: forms that no rule of endings leads to, and everyday words for one thing.
//!
//! Only questions in plain words that were not answered as typed are helped by them; the index knows nothing of it. The lists
//! hold what people ask with about their own lives and work, where one word nearly always stands for the other. What often
//! means something else (`bit`, `rose`, `light`) is left out: a word too few costs a hit, a word too many costs the order.

/// English words with forms of their own, each list beginning with the plain one.
const IRREGULAR: &[&[&str]] = &[
    &["become", "became"],
    &["begin", "began", "begun"],
    &["bend", "bent"],
    &["bleed", "bled"],
    &["blow", "blew", "blown"],
    &["break", "broke", "broken"],
    &["breed", "bred"],
    &["bring", "brought"],
    &["build", "built"],
    &["burn", "burnt"],
    &["buy", "bought"],
    &["catch", "caught"],
    &["child", "children"],
    &["choose", "chose", "chosen"],
    &["come", "came"],
    &["deal", "dealt"],
    &["dig", "dug"],
    &["draw", "drew", "drawn"],
    &["dream", "dreamt"],
    &["drink", "drank", "drunk"],
    &["drive", "drove", "driven"],
    &["eat", "ate", "eaten"],
    &["fall", "fell", "fallen"],
    &["feed", "fed"],
    &["feel", "felt"],
    &["fight", "fought"],
    &["find", "found"],
    &["flee", "fled"],
    &["fly", "flew", "flown"],
    &["foot", "feet"],
    &["forbid", "forbade", "forbidden"],
    &["forget", "forgot", "forgotten"],
    &["forgive", "forgave", "forgiven"],
    &["freeze", "froze", "frozen"],
    &["get", "got", "gotten"],
    &["give", "gave", "given"],
    &["go", "went", "gone"],
    &["goose", "geese"],
    &["grow", "grew", "grown"],
    &["half", "halves"],
    &["hang", "hung"],
    &["hear", "heard"],
    &["hide", "hid", "hidden"],
    &["hold", "held"],
    &["keep", "kept"],
    &["knife", "knives"],
    &["know", "knew", "known"],
    &["lay", "laid"],
    &["lead", "led"],
    &["leaf", "leaves"],
    &["learn", "learnt"],
    &["leave", "left"],
    &["lend", "lent"],
    &["life", "lives"],
    &["lose", "lost"],
    &["make", "made"],
    &["man", "men"],
    &["mean", "meant"],
    &["meet", "met"],
    &["mouse", "mice"],
    &["pay", "paid"],
    &["person", "people"],
    &["ride", "rode", "ridden"],
    &["ring", "rang", "rung"],
    &["rise", "risen"],
    &["run", "ran"],
    &["say", "said"],
    &["see", "saw", "seen"],
    &["seek", "sought"],
    &["sell", "sold"],
    &["send", "sent"],
    &["sew", "sewn"],
    &["shake", "shook", "shaken"],
    &["shelf", "shelves"],
    &["shine", "shone"],
    &["shoot", "shot"],
    &["show", "shown"],
    &["shrink", "shrank", "shrunk"],
    &["sing", "sang", "sung"],
    &["sink", "sank", "sunk"],
    &["sit", "sat"],
    &["sleep", "slept"],
    &["slide", "slid"],
    &["smell", "smelt"],
    &["speak", "spoke", "spoken"],
    &["spend", "spent"],
    &["spill", "spilt"],
    &["spin", "spun"],
    &["stand", "stood"],
    &["steal", "stole", "stolen"],
    &["stick", "stuck"],
    &["sting", "stung"],
    &["strike", "struck"],
    &["swear", "swore", "sworn"],
    &["sweep", "swept"],
    &["swim", "swam", "swum"],
    &["swing", "swung"],
    &["take", "took", "taken"],
    &["teach", "taught"],
    &["tear", "tore", "torn"],
    &["tell", "told"],
    &["think", "thought"],
    &["throw", "threw", "thrown"],
    &["tooth", "teeth"],
    &["understand", "understood"],
    &["wake", "woke", "woken"],
    &["wear", "wore", "worn"],
    &["weave", "wove", "woven"],
    &["weep", "wept"],
    &["wife", "wives"],
    &["win", "won"],
    &["wolf", "wolves"],
    &["woman", "women"],
    &["write", "wrote", "written"],
];

/// English words for one thing, in any form.
const ALIKE: &[&[&str]] = &[
    &["mother", "mom", "mum", "mama", "mommy", "mummy"],
    &["father", "dad", "papa", "daddy"],
    &["grandmother", "grandma", "granny"],
    &["grandfather", "grandpa", "granddad"],
    &["child", "kid"],
    &["photo", "photograph", "picture", "pic"],
    &["movie", "film"],
    &["television", "tv"],
    &["bike", "bicycle"],
    &["car", "automobile", "vehicle"],
    &["doctor", "physician"],
    &["job", "career", "profession", "occupation"],
    &["colleague", "coworker"],
    &["boss", "manager"],
    &["friend", "buddy", "pal"],
    &["holiday", "vacation"],
    &["trip", "travel", "journey"],
    &["buy", "purchase"],
    &["begin", "start"],
    &["quit", "resign"],
    &["ill", "sick", "illness", "unwell"],
    &["medicine", "medication", "pill", "tablet"],
    &["gift", "present"],
    &["shop", "store"],
    &["house", "home"],
    &["apartment", "flat"],
    &["dinner", "supper"],
    &["big", "large", "huge"],
    &["small", "little", "tiny"],
    &["happy", "glad"],
    &["scared", "afraid", "frightened"],
    &["repair", "fix", "mend"],
    &["choose", "pick"],
    &["speak", "talk"],
    &["study", "learn"],
    &["finish", "complete"],
    &["city", "town"],
    &["color", "colour"],
    &["favorite", "favourite"],
    &["neighbor", "neighbour"],
    &["practice", "practise"],
    &["theater", "theatre"],
    &["center", "centre"],
    &["gray", "grey"],
    &["jewelry", "jewellery"],
    &["rug", "carpet"],
    &["phone", "telephone", "smartphone"],
    &["mail", "email"],
    &["exam", "test"],
    &["university", "college"],
    &["class", "course", "lesson"],
    &["prize", "award"],
    &["contest", "competition"],
    &["concert", "gig"],
    &["marry", "wedding"],
    &["pregnant", "pregnancy"],
    &["baby", "infant", "newborn"],
    &["dog", "puppy"],
    &["cat", "kitten"],
    &["garden", "yard"],
    &["expensive", "costly"],
    &["salary", "wage"],
    &["hike", "trek"],
    &["road", "street"],
    &["error", "failure", "bug"],
    &["delete", "remove"],
    &["config", "configuration", "setting"],
    &["doc", "document", "documentation"],
    &["repo", "repository"],
    &["database", "db"],
];

/// Chinese words of two characters for one thing.
const ALIKE_PAIRS: &[&[&str]] = &[
    &["妈妈", "母亲", "老妈"],
    &["爸爸", "父亲", "老爸"],
    &["爷爷", "祖父"],
    &["奶奶", "祖母"],
    &["外婆", "姥姥"],
    &["外公", "姥爷"],
    &["孩子", "小孩"],
    &["女友", "女朋"],
    &["男友", "男朋"],
    &["丈夫", "老公"],
    &["妻子", "老婆", "太太"],
    &["朋友", "好友"],
    &["老师", "教师"],
    &["医生", "大夫"],
    &["生病", "患病"],
    &["旅游", "旅行"],
    &["喜欢", "喜爱", "爱好"],
    &["辞职", "离职"],
    &["礼物", "礼品"],
    &["照片", "相片"],
    &["电影", "影片"],
    &["餐厅", "饭店", "餐馆"],
    &["做饭", "烹饪", "做菜"],
    &["购买", "买了"],
    &["推荐", "建议"],
    &["难过", "伤心", "悲伤"],
    &["高兴", "开心", "快乐"],
    &["害怕", "恐惧"],
    &["星期", "礼拜"],
    &["运动", "锻炼", "健身"],
    &["比赛", "竞赛"],
    &["考试", "测验"],
    &["失眠", "睡不"],
    &["存款", "积蓄"],
    &["收养", "领养"],
    &["修理", "维修"],
    &["错误", "报错"],
    &["删除", "删掉"],
];

/// Whether two words have the same stem, the one of the first being known.
fn is_form_of(stem: &str, word: &str) -> bool {
    word == stem || super::stem::stem(word).as_deref() == Some(stem)
}

/// The lists of irregular forms that a word belongs to.
pub(super) fn irregular(word: &str, stem: &str) -> impl Iterator<Item = &'static str> {
    let of_word = |list: &&&'static [&'static str]| list.contains(&word) || is_form_of(stem, list[0]);
    let lists: Vec<_> = IRREGULAR.iter().filter(of_word).copied().collect();
    lists.into_iter().flatten().copied()
}

/// The words for the same thing as this one, which is among them.
pub(super) fn alike(word: &str, stem: &str) -> Vec<&'static str> {
    if !word.is_ascii() {
        let lists = ALIKE_PAIRS.iter().filter(|list| list.contains(&word));
        return lists.flat_map(|list| list.iter().copied()).collect();
    }
    let plain: Vec<&str> = IRREGULAR
        .iter()
        .filter(|list| list.contains(&word))
        .map(|list| list[0])
        .collect();
    let of_word = |known: &&str| is_form_of(stem, known) || plain.contains(known);
    let lists = ALIKE.iter().filter(|list| list.iter().any(of_word));
    lists.flat_map(|list| list.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Tokens of the index are looked up, so that only what is one can be found.
    #[test]
    fn every_entry_is_one_token_and_stands_once() {
        for list in IRREGULAR.iter().chain(ALIKE).chain(ALIKE_PAIRS) {
            assert!(list.len() > 1, "{list:?}");
            for word in *list {
                let tokens = super::super::positions(word, super::super::Purpose::Query);
                assert_eq!(tokens.len(), 1, "{word}");
                assert_eq!(tokens[0].text, *word);
            }
        }
        for lists in [ALIKE, ALIKE_PAIRS] {
            let words: Vec<&str> = lists.iter().flat_map(|list| list.iter().copied()).collect();
            assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len());
        }
    }
}
