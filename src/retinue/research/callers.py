from retinue.research.analyzer import analyze as list_callers
