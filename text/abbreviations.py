"""Abbreviations with a full stop, of all supported languages together, since pages mix languages.

From CLDR's lists of suppressed sentence breaks (https://github.com/unicode-org/cldr/tree/main/common/segments), without
everyday words ("All.", "Go."). Days and months are CLDR's, by babel.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from babel import Locale, UnknownLocaleError


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Unambiguous ones: no sentence ends after them.
ABBREVIATIONS = _words(
    # de
    "ansprechp gesch geschf ltg stellv stv vors "
    "abt allg amtl anm bd beil bspw bzgl bzw ca co dgl "
    "dipl dipl-ing dr eigtl einschl entspr evtl exkl fam frl gebr gem "
    "ges ggf ggfs hl hr hrn hrsg inh inkl insb jew jh jhd kath kfm lt mio mld mln mrd mtl prof röm sog spez st std str "
    "med südd tägl tel urspr verh vgl vorm zb zt zzgl "
    # en
    "approx apt attn capt cf cmdr dept lt messrs mr mrs ms mt mts pvt rev sen sgt sr vs "
    # fr, it, es, pt, ro
    "ap av avd avda bât bd bull chap cie dott dra dña dpto éd esc excmo gral mgr mlle mme p.za prof prov pza pzza réf "
    "rte sig sigg sra sras sres srta sta tél ud vd v.le c.so dr dras profa "
    # nl, sv, da, nb, fi
    "bijv bl.a dhr dvs enl esim evt f.eks incl ing kl klo m.m mevr mnd mw o.s.v puh resp t.ex tlf "
    # hu, pl, cs
    "al dkt em fsz godz hab hod inż ker krt ks np nám os pkt pok pon tj tys tzn tzv tř ul ún vö wg św č "
    # ru, uk, bg, el, tr
    "бл вул буд гр доб им каб кім корп кв обл ок оф пл просп проф пр руб стр тел тыс ул эт хв грн вх ет αρ οδ τηλ κα "
    "λεωφ apt bld cad cd çev mah pl sk sok"
)
# Ambiguous ones: abbreviations only before a number ("No. 5", "Abs. 2", "Rm. 12").
BEFORE_NUMBER = _words(
    "abs apdo app art febr sept aufl bat bl cap ch desp est et etc ext "
    "fax fig fl flat gate geb gen handy int kap kat lok lot max "
    "min mind mob no nos nr num núm op pag pág par para platz "
    "pos post pp qm rep rm sc sec sek suite tab tel vol vr wk "
    "zi zr kb ok piano pt ch п см т ст ч "
    "aprox cca env pribl přibl ust yakl περ прибл прим чл "
    "bur cam de du gab maks máx postf sect доб стр רח טל"
)
# Missing in CLDR
_MORE_DAYS = _words("pn tues thur thurs vrij woe zat mier hét csüt pén ndz пон чет пет съб")
STREETS = ("str", "straat", "pl", "gasse")  # ends of a street's name before its number ("Hafenstr. 5", "Marktpl. 7")
# After a number, they may end a sentence.
UNITS = _words("h hod zł kč kr km m g kg l u min ч год м хв мин руб коп грн")
# After a name, they may end a sentence: "Acme Inc. The office ..."
LAST = _words("assn ave bldg blvd corp inc jr ltd rd")
HOURS = ("a.m", "p.m", "a.m.", "p.m.")  # may end a sentence, depending on the next word


@cache
def days(lang: str) -> frozenset[str]:
    """Short names of weekdays, in lower case: abbreviations before a number or another day ("Mo. Mi. 9-12")."""
    return _short("days", lang) | _MORE_DAYS


@cache
def months(lang: str) -> frozenset[str]:
    """Short names of months, in lower case: abbreviations before a number."""
    return _short("months", lang)


def _short(kind: Literal["days", "months"], lang: str) -> frozenset[str]:
    """Short names in a language; in English for languages that CLDR lacks."""
    try:
        names = getattr(Locale.parse(re.split("[-_]", lang)[0].lower()), kind)
    except (UnknownLocaleError, ValueError):
        return _short(kind, "en")
    found = (names[use].get(width, {}) for use in ("format", "stand-alone") for width in ("abbreviated", "short"))
    return frozenset(name.rstrip(".").casefold() for each in found for name in each.values())
