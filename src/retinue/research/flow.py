from retinue.research.analyzer import analyze as tell_flow
