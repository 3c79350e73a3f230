r"""What each way to write an answer is read as. A row: the response, its status and value by the card, and by ours.

Where the two differ there is a reason in `docs/scoring.md`. `=` stands for "as by the card".
"""

from __future__ import annotations

from collections import Counter

import pytest
from evaluator_toys import example, response
from hypothesis import given, settings
from hypothesis import strategies as st

from gniah.evaluator.extraction import last_block
from gniah.evaluator.graphniah import reading
from gniah.evaluator.graphniah.scoring import SCORER
from gniah.evaluator.judging import Verdict, assess
from gniah.evaluator.readings import Readings
from gniah.records.responses import prompt_sha256

PROSE = "I followed the citations from the source, one after the other, and kept a list of what I had seen. "
INSTRUCTION = r"End with exactly one final line: \answer{YES} or \answer{NO}."

# The right answer is YES.
YES_NO = [
    # As asked, and dressed.
    (r"\answer{YES}", "correct YES", "="),
    (r"\answer{NO}", "wrong NO", "="),
    (PROSE + "\n\n" + r"\answer{YES}", "correct YES", "="),
    (r"\answer{yes}", "correct YES", "="),
    (r"\answer{Yes.}", "correct YES", "="),
    (r"\answer{ YES }", "correct YES", "="),
    ("\\answer{\nYES\n}", "correct YES", "="),
    (r"\answer{**YES**}", "correct YES", "="),
    (r"**\answer{YES}**", "correct YES", "="),
    (r"`\answer{YES}`", "correct YES", "="),
    (r"$\answer{YES}$", "correct YES", "="),
    (r"\answer{\text{YES}}", "correct YES", "="),
    (r"\answer{\mathrm{YES}}", "correct YES", "="),
    (r"\answer{\textbf{YES}}", "correct YES", "="),
    (r"\answer{\boxed{\text{YES}}}", "correct YES", "="),
    (r"\boxed{\answer{YES}}", "correct YES", "="),
    (r"\answer{\answer{YES}}", "correct YES", "="),
    (r"\answer{$\text{YES}$}", "correct YES", "="),
    (r"\answer{\(YES\)}", "correct YES", "="),
    (r'\answer{"YES"}', "correct YES", "="),
    (r"\answer{“YES”}", "correct YES", "="),
    (r"\answer{(YES)}", "correct YES", "="),
    (r"\answer{{YES}}", "correct YES", "="),
    (r"\answer{YES!}", "correct YES", "="),
    (r"\\answer{YES}", "correct YES", "="),
    (r"- \answer{YES}", "correct YES", "="),
    # Invisible and wide characters.
    ("\\answer{Y\u200bES\u200d}", "correct YES", "="),
    ("\\answer{\ufeffYES\u00a0}", "correct YES", "="),
    ("\\answer{\u202aYES\u202c}", "correct YES", "="),
    ("\\answer{\uff39\uff25\uff33}", "correct YES", "="),
    ("\uff3canswer\uff5bYES\uff5d", "correct YES", "="),
    ("\\answer\u200b{YES}", "correct YES", "="),
    (PROSE + "\\answer\u200b{YES}", "unreadable", "correct YES"),
    ("\\answer\u00a0{YES}", "unreadable", "correct YES"),
    # The command spelled otherwise: to the card there is no block.
    (r"\Answer{YES}", "unreadable", "correct YES"),
    (r"\ANSWER{YES}", "unreadable", "correct YES"),
    (r"\answer {YES}", "unreadable", "correct YES"),
    (r"\answer\{YES\}", "unreadable", "correct YES"),
    (r"\answer{NO}" + "\nNo: " + r"\Answer{YES}", "wrong NO", "correct YES"),
    (r"\answers{YES}", "unreadable", "="),
    (r"answer{YES}", "unreadable", "="),
    (r"\answer(YES)", "unreadable", "="),
    (r"<answer>YES</answer>", "unreadable", "="),
    # Repeated and corrected.
    (r"\answer{YES}" + "\n" + r"\answer{YES}", "correct YES", "="),
    (r"\answer{YES}" + "\nThat is my last word.", "correct YES", "="),
    (r"\answer{NO} No, I was wrong: \answer{YES}", "correct YES", "="),
    (r"\answer{NO}" + "\n\nWait, there is a path.\n\n" + r"\answer{YES}", "correct YES", "="),
    (r"\answer{NO} → \answer{YES}", "correct YES", "="),
    (r"\answer{YES} and not \answer{NO}", "wrong NO", "correct YES"),
    (r"It is \answer{YES} rather than \answer{NO}.", "wrong NO", "correct YES"),
    (r"It isn't **\answer{NO}** but \answer{YES}", "correct YES", "="),
    (r"The answer is not \answer{NO}.", "wrong NO", "unreadable"),
    ("I cannot say whether it is or not\n" + r"\answer{NO}", "wrong NO", "="),
    # Several different ones side by side: the card takes the last.
    (r"\answer{YES} or \answer{NO}", "wrong NO", "unreadable"),
    (r"\answer{NO} / \answer{YES}", "correct YES", "unreadable"),
    ("\\answer{NO}\n\\answer{YES}", "correct YES", "unreadable"),
    (r"\answer{YES}\answer{NO}", "wrong NO", "unreadable"),
    (r"At first \answer{NO}" + "\n\n" + r"\answer{YES}", "correct YES", "="),
    (r"\answer{YES} or \answer{yes}", "correct YES", "="),
    (r"\answer{maybe} or \answer{YES}", "correct YES", "unreadable"),
    # The instruction quoted.
    (r"The form is \answer{YES} or \answer{NO}. So: \answer{YES}", "correct YES", "="),
    (r"I must end with \answer{YES} or \answer{NO}", "wrong NO", "unreadable"),
    (INSTRUCTION + "\n\n" + r"\answer{YES}", "correct YES", "="),
    ("It must be one of:\n\\answer{YES}\n\\answer{NO}\n", "wrong NO", "unreadable"),
    ("It must be one of:\n- \\answer{NO}\n- \\answer{YES}\n", "correct YES", "unreadable"),
    (INSTRUCTION + "\n\nThere is a path.\n\n" + r"\answer{YES}", "correct YES", "="),
    (r"\answer{YES}" + "\n(as told: " + r"\answer{...})", "unreadable", "correct YES"),
    (r"\answer{YES}" + " " + r"\answer{…}", "unreadable", "correct YES"),
    (r"\answer{YES} \answer{}", "unreadable", "correct YES"),
    # No value, or more than one.
    (r"\answer{}", "unreadable", "="),
    (r"\answer{...}", "unreadable", "="),
    (r"\answer{YES or NO}", "unreadable", "="),
    (r"\answer{YES/NO}", "unreadable", "="),
    (r"\answer{YES, it is}", "unreadable", "="),
    (r"\answer{YES (reachable)}", "unreadable", "="),
    (r"\answer{YES?}", "unreadable", "="),
    (r"\answer{~~YES~~}", "unreadable", "="),
    (r"\answer{Y}", "unreadable", "="),
    (r"\answer{true}", "unreadable", "="),
    (r"\answer{1}", "unreadable", "="),
    (r"\answer{NOT}", "unreadable", "="),
    (r"\answer{YESNO}", "unreadable", "="),
    (r"\answer{not YES}", "unreadable", "="),
    (r"\answer{Answer: YES}", "unreadable", "correct YES"),
    (r"\answer{The answer is NO}", "unreadable", "wrong NO"),
    (r"\answer{The answer is not NO}", "unreadable", "="),
    # Other languages, and letters that look alike.
    (r"\answer{Ja}", "unreadable", "="),
    (r"\answer{Sí}", "unreadable", "="),
    (r"\answer{Oui}", "unreadable", "="),
    (r"\answer{是}", "unreadable", "="),
    (r"\answer{нет}", "unreadable", "="),
    ("\\answer{\u0423\u0415\u0421}", "unreadable", "="),
    # Braces.
    (r"\answer{YES", "unreadable", "="),
    (r"\answer{NO} \answer{YES", "wrong NO", "="),
    (r"\answer{foo \answer{YES}", "correct YES", "="),
    (r"set { \answer{YES}", "correct YES", "="),
    (r"} \answer{YES}", "correct YES", "="),
    (r"\answer{{YES}", "unreadable", "="),
    (r"\answer{YES}}", "correct YES", "="),
    # Thinking.
    (r"<think>\answer{NO}</think>\answer{YES}", "correct YES", "="),
    (r"<think>\answer{YES}", "unreadable", "="),
    (r"<think>so \answer{YES} it is", "unreadable", "="),
    (r"\answer{YES}<think>but \answer{NO}", "correct YES", "="),
    (r"\answer{NO}</think>\answer{YES}", "correct YES", "="),
    (r"<think>a</think><think>\answer{YES}", "unreadable", "="),
    (r"<THINK>\answer{NO}</THINK> YES", "correct YES", "="),
    (r"<thinking>\answer{NO}</thinking> YES", "correct YES", "="),
    (r"<think>\boxed{YES}</think>", "empty", "="),
    ("I think > 3 papers <\n" + r"\answer{YES}", "correct YES", "="),
    # Nothing at all.
    ("", "empty", "="),
    (" \n\t ", "empty", "="),
    ("\u200b\u00a0\ufeff", "empty", "="),
    # No block: the whole response, its end, its last line, a box.
    ("YES", "correct YES", "="),
    ("no", "wrong NO", "="),
    ("**Yes.**", "correct YES", "="),
    ("# YES", "correct YES", "="),
    ("```\nYES\n```", "correct YES", "="),
    (r"\boxed{YES}", "correct YES", "="),
    (PROSE + " " * 100 + "YES", "correct YES", "="),
    (PROSE + "\n\nYES", "unreadable", "correct YES"),
    (PROSE + "\n\n**Final answer:** NO.", "unreadable", "wrong NO"),
    (PROSE + "\n\n**Final Answer**\n\nYES", "unreadable", "correct YES"),
    ("NO\nYES", "unreadable", "="),
    ("Answer: NO\n\nAnswer: YES", "unreadable", "="),
    ("The answer is YES", "unreadable", "correct YES"),
    ("So the correct answer is: **YES**.", "unreadable", "correct YES"),
    ("I would say YES", "unreadable", "="),
    ("Is the answer YES", "unreadable", "="),
    ("The answer is not YES", "unreadable", "="),
    ("Antwort: JA", "unreadable", "="),
    ("Hence $\\boxed{\\text{YES}}$.\n\nAsk me for the path.", "unreadable", "correct YES"),
    ("\\boxed{YES} or \\boxed{NO}\n\nWho knows.", "unreadable", "="),
    ("\\boxed{NO}\n\nAnswer: YES", "unreadable", "="),
    ("\\boxed{NO}\n\nBut there is a path.\n\nAnswer: YES", "unreadable", "correct YES"),
    ("x" * 200, "unreadable", "="),
    ("I cannot answer.", "unreadable", "="),
]

# The right answer is 1042.
COUNTING = [
    # As asked, and dressed.
    (r"\answer{1042}", "correct 1042", "="),
    (r"\answer{$1042$}", "correct 1042", "="),
    (r"\answer{\boxed{1042}}", "correct 1042", "="),
    (r"\answer{\text{1042}}", "correct 1042", "="),
    (r"\answer{\(1042\)}", "correct 1042", "="),
    (r"\answer{\[1042\]}", "correct 1042", "="),
    (r"\answer{**1042**}", "correct 1042", "="),
    (r"\answer{(1042)}", "correct 1042", "="),
    (r"\answer{[1042]}", "correct 1042", "="),
    (r"\answer{1042.}", "correct 1042", "="),
    (r"\answer{1042,}", "correct 1042", "="),
    (r"\answer{0001042}", "correct 1042", "="),
    (r"\answer{104" + "\u200b" + "2}", "correct 1042", "="),
    # Groups of three, and what is none.
    (r"\answer{1,042}", "correct 1042", "="),
    (r"\answer{1{,}042}", "correct 1042", "="),
    (r"\answer{1\,042}", "correct 1042", "="),
    (r"\answer{$$1{,}042$$}", "correct 1042", "="),
    ("\\answer{1\u00a0042}", "correct 1042", "="),
    ("\\answer{1\u202f042}", "correct 1042", "="),
    ("\\answer{1\u2009042}", "correct 1042", "="),
    (r"\answer{1 042}", "unreadable", "="),
    (r"\answer{1.042}", "unreadable", "="),
    (r"\answer{1'042}", "unreadable", "="),
    (r"\answer{1_042}", "unreadable", "="),
    (r"\answer{10,42}", "unreadable", "="),
    (r"\answer{1,0420}", "unreadable", "="),
    (r"\answer{0,042}", "unreadable", "="),
    (r"\answer{1,,042}", "unreadable", "="),
    (r"\answer{1,042,07}", "unreadable", "="),
    # Wide, styled, raised and foreign digits.
    ("\\answer{１０４２}", "correct 1042", "="),
    ("\\answer{１，０４２}", "correct 1042", "="),
    ("\\answer{𝟏𝟎𝟒𝟐}", "correct 1042", "="),
    ("\\answer{104²}", "unreadable", "="),
    ("\\answer{10₄₂}", "unreadable", "="),
    ("\\answer{½}", "unreadable", "="),
    ("\\answer{١٠٤٢}", "unreadable", "="),
    ("\\answer{千四十二}", "unreadable", "="),
    (r"\answer{MXLII}", "unreadable", "="),
    (r"\answer{forty-two}", "unreadable", "="),
    # Whole values only: no suffix, no part.
    (r"\answer{42}", "wrong 42", "="),
    (r"\answer{0}", "wrong 0", "="),
    (r"\answer{000}", "wrong 0", "="),
    (r"\answer{11042}", "wrong 11042", "="),
    (r"\answer{10420}", "wrong 10420", "="),
    (r"\answer{" + "1" * 900 + "}", "wrong " + "1" * 900, "="),
    (r"\answer{" + "1" * 5000 + "}", "unreadable", "="),
    (r"\answer{" + "0" * 5000 + "1042}", "unreadable", "="),
    # A unit beside the number: known words only.
    (r"\answer{1042 papers}", "unreadable", "correct 1042"),
    (r"\answer{1042 paper}", "unreadable", "correct 1042"),
    (r"\answer{1,042 distinct papers}", "unreadable", "correct 1042"),
    (r"\answer{1042 other papers in total}", "unreadable", "correct 1042"),
    (r"\answer{1042 \text{ papers}}", "unreadable", "correct 1042"),
    (r"\answer{$1{,}042\ \text{reachable papers}$}", "unreadable", "correct 1042"),
    (r"\answer{1042~nodes}", "unreadable", "correct 1042"),
    (r"\answer{**1042** papers}", "unreadable", "correct 1042"),
    (r"\answer{42 papers}", "unreadable", "wrong 42"),
    (r"\answer{1042 in total}", "unreadable", "="),
    (r"\answer{1042 citations}", "unreadable", "="),
    (r"\answer{1042 papers, source included}", "unreadable", "="),
    (r"\answer{1042 of 1100 papers}", "unreadable", "="),
    (r"\answer{papers}", "unreadable", "="),
    (r"\answer{1042 \text{ steps}}", "unreadable", "="),
    # Equations and announcements.
    (r"\answer{x = 1042}", "unreadable", "correct 1042"),
    (r"\answer{N=1042}", "unreadable", "correct 1042"),
    (r"\answer{$|K_s| - 1 = 1{,}042$}", "unreadable", "correct 1042"),
    (r"\answer{1043 - 1 = 1042}", "unreadable", "correct 1042"),
    (r"\answer{x = 1042 papers}", "unreadable", "correct 1042"),
    (r"\answer{x := 1042}", "unreadable", "correct 1042"),
    (r"\answer{1041 = 1042}", "unreadable", "="),
    (r"\answer{a = 1, b = 1042}", "unreadable", "="),
    (r"\answer{x \neq 1042}", "unreadable", "="),
    (r"\answer{x \geq 1042}", "unreadable", "="),
    (r"\answer{x >= 1042}", "unreadable", "="),
    (r"\answer{x != 1042}", "unreadable", "="),
    (r"\answer{1042 = x}", "unreadable", "="),
    (r"\answer{Total: 1042}", "unreadable", "correct 1042"),
    (r"\answer{number of distinct papers: 1042}", "unreadable", "correct 1042"),
    (r"\answer{step: 1042}", "unreadable", "="),
    # Signs and fractions.
    (r"\answer{+1042}", "unreadable", "correct 1042"),
    (r"\answer{-1042}", "unreadable", "="),
    ("\\answer{−1042}", "unreadable", "="),
    (r"\answer{1042.0}", "unreadable", "correct 1042"),
    (r"\answer{1042.00}", "unreadable", "correct 1042"),
    (r"\answer{1042.000}", "unreadable", "="),
    (r"\answer{1042.5}", "unreadable", "="),
    (r"\answer{1e3}", "unreadable", "="),
    (r"\answer{0x412}", "unreadable", "="),
    (r"\answer{1042%}", "unreadable", "="),
    (r"\answer{2084/2}", "unreadable", "="),
    # Bounds, estimates, ranges, lists.
    (r"\answer{~1042}", "unreadable", "="),
    (r"\answer{≈1042}", "unreadable", "="),
    (r"\answer{about 1042}", "unreadable", "="),
    (r"\answer{at least 1042}", "unreadable", "="),
    (r"\answer{>1042}", "unreadable", "="),
    (r"\answer{1042+}", "unreadable", "="),
    (r"\answer{1040-1042}", "unreadable", "="),
    (r"\answer{1040–1042}", "unreadable", "="),
    (r"\answer{1040 to 1042}", "unreadable", "="),
    (r"\answer{1042 or 1043}", "unreadable", "="),
    (r"\answer{1042, 1043}", "unreadable", "="),
    (r"\answer{[1042, 1043]}", "unreadable", "="),
    (r"\answer{1042 (or 1043)}", "unreadable", "="),
    (r"\answer{1042...}", "unreadable", "="),
    (r"\answer{1042?}", "unreadable", "="),
    (r"\answer{#1042}", "unreadable", "="),
    (r"\answer{No. 1042}", "unreadable", "="),
    (r"\answer{1042nd}", "unreadable", "="),
    # Several blocks, boxes beside them, placeholders.
    (r"\answer{1043} \answer{1042}", "correct 1042", "unreadable"),
    (r"\answer{1043}, no, \answer{1042}", "correct 1042", "="),
    (r"\answer{1042} or \answer{1043}", "wrong 1043", "unreadable"),
    (r"\answer{1042}, not \answer{17}", "wrong 17", "correct 1042"),
    (r"\answer{1042}, instead of \answer{17}.", "wrong 17", "correct 1042"),
    (r"not \answer{17}", "wrong 17", "unreadable"),
    (r"not \boxed{17} but \answer{1042}", "correct 1042", "="),
    (r"\answer{1042} not \boxed{17}", "correct 1042", "="),
    (r"\answer{many} 1042", "unreadable", "="),
    (r"\answer{N}", "unreadable", "="),
    (r"\answer{1042}, in the form \answer{N}", "unreadable", "correct 1042"),
    (r"\answer{1042", "unreadable", "="),
    # No block.
    ("1042", "correct 1042", "="),
    ("1042.", "correct 1042", "="),
    ("**1,042**", "correct 1042", "="),
    ("## 1042", "correct 1042", "="),
    (r"\boxed {1042}", "unreadable", "correct 1042"),
    ("The total is 1042", "unreadable", "correct 1042"),
    ("The final count is 1,042 papers.", "unreadable", "correct 1042"),
    ("There are 1042 of them", "unreadable", "="),
    (PROSE + "\n\n" + " " * 26 + "1042", "correct 1042", "="),
    (PROSE + "\n\n1042", "unreadable", "correct 1042"),
    ("1041\n1042", "unreadable", "="),
    ("1042\n\n1042 papers", "unreadable", "correct 1042"),
    (PROSE + "\n\n1042 papers", "unreadable", "correct 1042"),
    ("9" * 10 + "0" * 26 + "1042", "unreadable", "wrong " + "9" * 10 + "0" * 26 + "1042"),
    ("9" * 31, "unreadable", "wrong " + "9" * 31),
    ("9" * 30, "wrong " + "9" * 30, "="),
    ("We get $\\boxed{1042}$ papers.\n\nAnything else?", "unreadable", "correct 1042"),
    ("We get \\boxed{1042}, not \\boxed{17}.\n\nAnything else?", "unreadable", "correct 1042"),
    ("\\boxed{17} first, then \\boxed{1042}.\nDone.", "unreadable", "correct 1042"),
]

# The right answer is C, of A to D; the options are called `Paper A` to `Paper D`.
CHOICE = [
    # One letter, dressed.
    ("C", "correct C", "="),
    ("C.", "correct C", "="),
    ("c", "correct C", "="),
    ("(C)", "correct C", "="),
    ("[C]", "correct C", "="),
    ("**C**", "correct C", "="),
    ("**(C)**", "correct C", "="),
    ("$C$", "correct C", "="),
    ("`C`", "correct C", "="),
    ("\\text{C}", "correct C", "="),
    ("\\boxed{C}", "correct C", "="),
    ("\\mathbf{C}", "correct C", "="),
    ("\uff23", "correct C", "="),
    ("C\u200b", "correct C", "="),
    ("\u00a0C\u00a0", "correct C", "="),
    ("Option C", "correct C", "="),
    ("option c.", "correct C", "="),
    ("**Option C**", "correct C", "="),
    ("**Option** C", "correct C", "="),
    ("Option (C)", "correct C", "="),
    ("Option **C**", "correct C", "="),
    ("D", "wrong D", "="),
    # In a block.
    (r"\answer{C}", "correct C", "="),
    (r"\answer{\boxed{C}}", "correct C", "="),
    (r"\answer{$\mathrm{C}$}", "correct C", "="),
    (r"\answer{Option C}", "correct C", "="),
    (r"\answer{(c).}", "correct C", "="),
    (r"\answer{C}" + "\nB", "correct C", "="),
    (r"\answer{B}, no, \answer{C}", "correct C", "="),
    (r"\answer{B} \answer{C}", "correct C", "unreadable"),
    (r"\answer{A}, \answer{B} or \answer{C}", "correct C", "unreadable"),
    (r"\answer{C}, certainly not \answer{D}", "wrong D", "correct C"),
    (r"\answer{C}; the form was \answer{X}", "unreadable", "correct C"),
    (r"\answer{C or D}", "unreadable", "="),
    (r"\answer{C/D}", "unreadable", "="),
    (r"\answer{A, C}", "unreadable", "="),
    (r"\answer{CD}", "unreadable", "="),
    (r"\answer{C?}", "unreadable", "="),
    (r"\answer{not C}", "unreadable", "="),
    # A letter that is not offered, or no letter at all.
    ("E", "unreadable", "="),
    (r"\answer{E}", "unreadable", "="),
    (r"\answer{X}", "unreadable", "="),
    (r"\answer{E}" + "\nC", "unreadable", "="),
    (r"\answer{3}", "unreadable", "="),
    ("\u0421", "unreadable", "="),
    ("CC", "unreadable", "="),
    ("I", "unreadable", "="),
    ("None of the above", "unreadable", "="),
    (r"\answer{None of the above}", "unreadable", "="),
    ("None of these targets is reachable from the source.", "unreadable", "="),
    # The letter spelled otherwise.
    ("C)", "unreadable", "correct C"),
    ("C:", "correct C", "="),
    ("Choice C", "unreadable", "correct C"),
    ("Option: C", "unreadable", "correct C"),
    ("Answer C", "unreadable", "correct C"),
    ("OptionC", "unreadable", "="),
    ("Option", "unreadable", "="),
    ("Options C", "unreadable", "="),
    # The option's text, alone or beside its letter.
    ('Paper "Paper C"', "unreadable", "correct C"),
    (r"\answer{Paper C}", "unreadable", "correct C"),
    (r"\answer{paper c.}", "unreadable", "correct C"),
    (r"\answer{Paper B}", "unreadable", "wrong B"),
    (r'\answer{C. Paper "Paper C"}', "unreadable", "correct C"),
    (r"\answer{(C) Paper C}", "unreadable", "correct C"),
    (r"\answer{Option C: Paper C}", "unreadable", "correct C"),
    (r"\answer{C — Paper C}", "unreadable", "correct C"),
    (r'\answer{C. Paper "Paper B"}', "unreadable", "="),
    (r"\answer{Paper}", "unreadable", "="),
    (r"\answer{Paper C and Paper D}", "unreadable", "="),
    (r"\answer{C. Paper}", "unreadable", "="),
    # The article and the pronoun beside options.
    ("a", "wrong A", "="),
    ("I think that a paper like this is hard to find", "unreadable", "="),
    ("A paper is reachable", "unreadable", "="),
    ("The answer is a", "unreadable", "="),
    ("The answer is a paper", "unreadable", "="),
    ("The answer is A", "unreadable", "wrong A"),
    ("The answer is (a)", "unreadable", "wrong A"),
    ("Answer: a", "unreadable", "wrong A"),
    ("I choose\na", "wrong A", "="),
    # The last line.
    ("It is\nC", "correct C", "="),
    ("It is\r\nOption C\r\n\n", "correct C", "="),
    ("A\nB\nD", "wrong D", "unreadable"),
    ("A\n\nC", "correct C", "unreadable"),
    ("D or not\nC\n\nC\n", "correct C", "="),
    ("C\n\nis it,\nand\nC", "correct C", "="),
    ("A. Paper A\nB. Paper B\nC. Paper C\nD. Paper D", "unreadable", "="),
    ("A. Paper A\nis no way. So:\nC. Paper C", "unreadable", "correct C"),
    ("The answer is C", "unreadable", "correct C"),
    ("The correct option is **C**.", "unreadable", "correct C"),
    ("ANSWER: $C$", "unreadable", "correct C"),
    ("ANSWER: **C**", "unreadable", "correct C"),
    ("ANSWER: (C)", "unreadable", "correct C"),
    ("Answer: B\nOn second thoughts\nAnswer: C", "unreadable", "correct C"),
    ("Answer: C or D", "unreadable", "="),
    ("Answer:", "unreadable", "="),
    ("Antwort: C", "unreadable", "="),
    ("The answer is not C", "unreadable", "="),
    ("A, B", "unreadable", "="),
    # Other boxes.
    ("So \\boxed{C} it is.\n\nThat was easy.", "unreadable", "correct C"),
    ("So $\\boxed{\\text{Option C}}$ it is.", "unreadable", "correct C"),
    ("The set \\mathbf{C} has \\fbox{D} in it.", "unreadable", "wrong D"),
    ("The set \\mathbf{C} is empty.", "unreadable", "="),
    # Thinking, and nothing.
    (r"<think>C</think>", "empty", "="),
    ("<think>hm</think>C", "correct C", "="),
    ("<think>hm\nC", "unreadable", "="),
    ("", "empty", "="),
]

# A fifth option says that none is reachable; the right answer is C.
NONE_OPTION = [
    ("E", "wrong E", "="),
    (r"\answer{E}", "wrong E", "="),
    (r"\answer{Paper E}", "unreadable", "wrong E"),
    (r"\answer{None of the above}", "unreadable", "="),
    (r"\answer{F}", "unreadable", "="),
]

ROWS = [
    *(("yes-no", "YES", "ABCD", *row) for row in YES_NO),
    *(("counting", "1042", "ABCD", *row) for row in COUNTING),
    *(("multiple-choice", "C", "ABCD", *row) for row in CHOICE),
    *(("multiple-choice", "C", "ABCDE", *row) for row in NONE_OPTION),
]


def shown(verdict: Verdict) -> str:
    assert (verdict.reason is None) == (verdict.status in {"correct", "wrong"})
    return verdict.status if verdict.value is None else f"{verdict.status} {verdict.value}"


def read(task: str, answer: str, letters: str, text: str) -> tuple[str, str]:
    asked = example(task, answer, letters=letters)
    prompts = prompt_sha256(asked.system_prompt, asked.user_prompt)
    verdicts = assess(asked, response(asked, text), SCORER, SCORER.gold(asked), prompts, 0)
    return shown(verdicts.card), shown(verdicts.ours)


@pytest.mark.parametrize(("task", "answer", "letters", "text", "card", "ours"), ROWS, ids=lambda item: repr(item)[:40])
def test_an_answer_is_read_as_stated(task: str, answer: str, letters: str, text: str, card: str, ours: str) -> None:
    assert read(task, answer, letters, text) == (card, card if ours == "=" else ours)


def test_there_are_enough_rows_and_none_is_there_twice() -> None:
    assert len(ROWS) > 350
    assert [row for row, times in Counter((row[0], row[2], row[3]) for row in ROWS).items() if times > 1] == []
    # A row that says of both readings the same has to say it with the sign.
    assert [row for row in ROWS if row[4] == row[5]] == []


def test_ours_reads_more_in_many_ways_and_less_where_nothing_was_said() -> None:
    differ = [(card, ours) for *_, card, ours in ROWS if ours != "="]
    assert sum(" " not in card for card, _ in differ) > 60
    assert {card.split()[0] for card, ours in differ if ours == "unreadable"} == {"correct", "wrong"}


def test_a_fifth_letter_counts_where_it_is_offered() -> None:
    none_variant = example("multiple-choice", "C", letters="ABCDE")
    assert SCORER.read(none_variant, r"\answer{E}").card.value == "E"
    assert len(SCORER.possible_answers(none_variant)) == 5


def test_the_short_way_reads_what_the_long_way_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    short = [read(task, answer, letters, text) for task, answer, letters, text, *_ in ROWS]
    monkeypatch.setattr(reading, "_is_simple", lambda *_: False)
    assert [read(task, answer, letters, text) for task, answer, letters, text, *_ in ROWS] == short


WORDS = [
    "\\answer{",
    "\\Answer {",
    "}",
    "{",
    "YES",
    "no",
    "C",
    "b",
    "42",
    " or ",
    "not ",
    "\n",
    ". ",
    "Answer: ",
    "\\boxed{",
]


@given(
    st.lists(st.sampled_from(WORDS), max_size=9).map("".join),
    st.sampled_from(["yes-no", "counting", "multiple-choice"]),
)
@settings(max_examples=600, deadline=None)
def test_the_short_way_reads_what_the_long_way_reads_in_any_text(text: str, task: str) -> None:
    kind = {"yes-no": reading.YES_NO_KIND, "counting": reading.COUNTING_KIND}.get(
        task, reading.Choice({"B": "x", "C": "y"})
    )
    block = last_block(text)
    card = reading._card(kind, text, block)
    assert reading.read(kind, text) == Readings(card, reading._ours(kind, text, card, block))


@given(st.lists(st.sampled_from(WORDS), max_size=9).map("".join))
@settings(max_examples=300, deadline=None)
def test_what_is_read_stands_in_the_text(text: str) -> None:
    for kind in (reading.YES_NO_KIND, reading.COUNTING_KIND):
        found = reading.read(kind, text)
        for one in (found.card, found.ours):
            assert (one.value is None) != (one.reason is None)
            assert one.value is None or one.value in text.upper()
