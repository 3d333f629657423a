"""Words that end with a full stop in the middle of a sentence, of our languages together: pages mix them.

After CLDR's lists of what ends no sentence and its short names of days and months
(https://github.com/unicode-org/cldr/tree/main/common), without those that are everyday words ("All.", "Go.").
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Nothing else is written so: no sentence ends behind them.
ABBREVIATIONS = _words(
    # de
    "abt allg amtl anm bd beil bspw bzgl bzw ca co dgl "
    "dipl dipl-ing dr eigtl einschl entspr evtl exkl fam frl gebr gem "
    "ges ggf ggfs hl hr hrn hrsg inh inkl insb jew jh jhd kath kfm lt mio mld mln mrd mtl prof röm sog spez st std str "
    "südd tägl tel urspr verh vgl vorm zb zt zzgl "
    # en
    "approx apt assn ave bldg blvd capt cf cmdr corp dept inc jr lt "
    "ltd messrs mr mrs ms mt mts pvt rd rev sen sgt sr tues "
    "thurs vs "
    # fr, it, es, pt, ro
    "ap av avd avda bât bd bull chap cie dott dra dña dpto éd esc excmo gral mgr mlle mme p.za prof prov pza pzza réf "
    "rte sig sigg sra sras sres srta sta tél ud vd v.le c.so dr dras profa "
    # nl, sv, da, nb, fi
    "bijv bl.a dhr dvs enl esim evt f.eks incl ing kl klo m.m mevr mnd mw o.s.v puh resp t.ex tlf "
    # hu, pl, cs
    "al dkt em fsz godz hab hod inż ker krt ks np nám os pkt pok pon tj tys tzn tzv tř ul ún vö wg św č "
    # ru, uk, bg, el, tr
    "бл вул буд гр доб им каб корп кв обл оф пл просп проф пр руб стр тел тыс ул эт хв грн вх ет αρ οδ τηλ κα λεωφ "
    "apt bld cad cd çev mah sk sok"
)
# Words of their own as well, or seldom alone: an abbreviation only before a number ("No. 5", "Abs. 2", "Rm. 12").
BEFORE_NUMBER = _words(
    "abs apdo app art aufl bat bl cap ch desp est et etc ext "
    "fax fig fl flat gate geb gen handy int kap kat lok lot max med "
    "min mind mob no nos nr num núm op pag pág par para pl platz "
    "pos post pp qm rep rm sc sec sek suite tab tel vol vr wk "
    "zi zr kb ok piano pt ch п см т ст ч"
)
# Before a number, or before another of them ("Mo. Mi. 9-12").
DAYS = _words(
    # de, en, nl
    "mo di mi do fr sa so mon tue tues wed thu thur thurs fri sat sun ma wo don woe vrij vr za zo zat "
    # fr, es, it, pt, ro, ca
    "lun mar mer jeu ven sam dim mié mie mier jue vie sáb sab dom gio seg ter qua qui sex lu joi vin sâm sâ du dj dv "
    # sv, da, nb, fi
    "mån tis ons tor tors fre lör sön man tir tirs lør søn ti ke to pe la su "
    # pl, cs, hu
    "pn pon wt śr czw cz sob nd niedz ndz po út st čt pá ne hé hét h k sze sz cs csüt p pén szo vas v "
    # ru, uk, bg, el, tr
    "пн вт ср чт пт сб вс пон пет съб нед чет сря нд δευ τρ τρί τετ πέμ παρ σάβ κυρ pzt sal çar per cum cmt paz"
)
MONTHS = _words(
    "jan feb febr mar mär märz mart apr avr abr mai may maj jun "
    "juin jul juil aug août ago sep sept okt oct ott nov dez dec "
    "déc dic gen ene fév févr janv giu lug set out fev abr янв февр мар апр июн июл авг сент окт нояб дек січ лют бер "
    "квіт трав черв лип серп вер жовт лист груд ιαν φεβ μαρ απρ "
    "μαΐ ιουν ιουλ αυγ σεπ οκτ νοε δεκ oca şub nis haz tem ağu "
    "eyl eki kas ara"
)
STREETS = ("str", "straat", "pl", "gasse")  # ends of a street's name before its number ("Hafenstr. 5", "Marktpl. 7")
UNITS = _words("h hod zł kč kr km m g kg l ч год")  # behind a figure they may end a sentence
HOURS = ("a.m", "p.m", "a.m.", "p.m.")  # may end a sentence, as what follows says
